/** Guards a tool's `execute`: it gets the input after all changes by the framework. */
import type { ToolBlockedError } from '../guard/blocked.ts'
import type { StopSignal } from '../delivery/runtime.ts'
import type { Tacho } from '../tacho.ts'
import { askedCallsOf } from './asked-calls.ts'
import { fitsSchema } from './fits.ts'
import { fields, guarded, type Fields } from './host.ts'

interface Framework {
  /** The tool's name in events and conditions. @param args the arguments of `execute` after the input. */
  name(args: readonly unknown[], options: Fields, tool: object): string
  signal(args: readonly unknown[]): StopSignal | undefined
  callId(args: readonly unknown[]): unknown
  refused(error: ToolBlockedError, options: Fields): unknown
  made?(tool: object): void
}

export function guardedFactory<Create extends Function>(create: Create, tacho: Tacho, framework: Framework): Create {
  function guardedCreate(this: unknown, toolOptions: unknown, ...more: unknown[]): unknown {
    const options = fields(toolOptions)
    const { execute } = options
    const make = (changed: unknown): unknown => create.call(this, changed, ...more)
    // Without an `execute` function, another program runs the tool, or the factory refuses it.
    if (typeof execute !== 'function') return make(toolOptions)
    function guardedExecute(this: unknown, input: unknown, ...args: unknown[]) {
      const owner = this === undefined || this === changed ? toolOptions : this
      return guarded<unknown>(
        tacho,
        {
          name: framework.name(args, options, tool),
          input,
          signal: framework.signal(args),
          callId: framework.callId(args),
        },
        (judged) => Reflect.apply(execute as Function, owner, [judged, ...args]) as unknown,
        (error) => framework.refused(error, options),
      )
    }
    // A framework may name a tool after its function.
    Object.defineProperty(guardedExecute, 'name', { value: execute.name })
    const changed = { ...options, execute: guardedExecute }
    const tool = make(changed) as object
    framework.made?.(tool)
    const { inputSchema, parameters } = options
    askedCallsOf(tacho).guard(framework.name([], options, tool), fitsSchema(inputSchema ?? parameters))
    return tool
  }
  return guardedCreate as unknown as Create
}

interface MethodCall {
  readonly name: string
  /** Index of the input among the arguments. */
  readonly at: number
  refused?(error: ToolBlockedError): unknown
}

export function guardedMethods<Owner extends object>(
  owner: Owner,
  tacho: Tacho,
  methods: ReadonlyMap<unknown, (args: readonly unknown[]) => MethodCall>,
): Owner {
  // Owners are classes with private fields, so methods run on the owner itself.
  return new Proxy(owner, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target)
      const method = methods.get(key)
      if (typeof value !== 'function') return value
      if (!method) return value.bind(target) as unknown
      return (...args: unknown[]) => {
        const { name, at, refused } = method(args)
        const input = args[at]
        return guarded<unknown>(
          tacho,
          { name, input },
          (judged) => Reflect.apply(value, target, args.with(at, judged)) as unknown,
          (error) => {
            if (refused) return refused(error)
            throw new Error(error.modelText, { cause: error })
          },
        )
      }
    },
  })
}
