/** What the integrations share: they read values of a framework, and never throw into the host. */
import type { Context } from '../context.ts'
import { attempt, type Core } from '../core.ts'
import { ToolBlockedError } from '../guard/blocked.ts'
import { readSafely } from '../json.ts'
import { createScope, type Outcome, type RunOptions } from '../run.ts'
import type { StopSignal } from '../runtime.ts'
import { Tacho } from '../tacho.ts'

export type Fields = Readonly<Record<string, unknown>>

/** The fields of any value; none of a value that is not an object. */
export function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

export function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

export function number(...values: unknown[]): number | undefined {
  return values.find((value): value is number => typeof value === 'number' && Number.isFinite(value))
}

/** The members that are set. */
export function set(members: Fields): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}

/** A part of a run: the current one, or a run of its own that ends with it. */
export interface Part {
  readonly core: Core
  readonly context: Context
  /** Ends the run, if it is one of its own. */
  end(status: Outcome): void
}

/** The current span itself. Outside a run, the span of a new run. */
export function enclosingPart(tacho: Tacho, options?: RunOptions): Part {
  const core = Tacho.coreOf(tacho)
  const context = core.context.getStore()
  return context ? { core, context, end: () => undefined } : beginPart(tacho, undefined, options)
}

/** A child span of `parent`, by default of the current span. Outside a run, the span of a new run. */
export function beginPart(tacho: Tacho, parent?: Context, options: RunOptions = {}): Part {
  const core = Tacho.coreOf(tacho)
  const current = parent ?? core.context.getStore()
  if (current) {
    const span = { spanId: core.ids.span(), parentSpanId: current.span.spanId }
    return { core, context: { scope: current.scope, span }, end: () => undefined }
  }
  const scope = createScope(core, options)
  const end = (status: Outcome) =>
    void core.record(scope, { type: 'SESSION_OUTCOME', label: status.toLowerCase(), payload: { status } })
  return { core, context: { scope, span: scope.span }, end }
}

const OPEN_MAX = 10_000

/** Open spans of a framework, by its ids. Forgets the oldest when their ends never arrive. */
export class OpenSpans<Open> {
  readonly #open = new Map<string, Open>()

  set(id: string, opened: Open): void {
    this.#open.set(id, opened)
    const [oldest] = this.#open.size > OPEN_MAX ? this.#open.keys() : []
    if (oldest !== undefined) this.#open.delete(oldest)
  }

  get(id: string): Open | undefined {
    return this.#open.get(id)
  }

  take(id: string): Open | undefined {
    const opened = this.#open.get(id)
    this.#open.delete(id)
    return opened
  }
}

export interface GuardedCall {
  name: string
  input: unknown
  signal?: StopSignal | undefined
  parent?: Context | undefined
}

/**
 * Runs a tool if the policies allow it, as `tacho.guard` does. Outside a run, the call becomes a run of its own.
 * @returns what `act` returns, or what `onBlocked` makes of the refusal.
 * @throws whatever `act` throws.
 */
export async function guarded<T>(
  tacho: Tacho,
  { name, input, signal, parent }: GuardedCall,
  act: () => T,
  onBlocked: (error: ToolBlockedError) => Awaited<T>,
): Promise<Awaited<T>> {
  const part = beginPart(tacho, parent)
  const options = { name, input: () => inputOf(input), ...(signal && { signal: () => signal }) }
  try {
    const result = await part.core.context.run(part.context, () => tacho.guard(act, options)())
    part.end('COMPLETED')
    return result
  } catch (error) {
    part.end('FAILED')
    if (error instanceof ToolBlockedError) return onBlocked(error)
    throw error
  }
}

/** What conditions see as `tool.input`. Some tools take their arguments as text: the object in it, or the text by name. */
function inputOf(given: unknown): unknown {
  if (typeof given !== 'string') return given
  const object = readSafely(() => JSON.parse(given) as unknown, undefined)
  return typeof object === 'object' && object !== null && !Array.isArray(object) ? object : { input: given }
}

/** A copy of each tool with another function under `key`. Keeps the prototype, so that the framework knows its tools. */
export function withFunction<Tool extends object>(
  tool: Tool,
  key: string,
  replace: (given: Function) => Function,
): Tool {
  const given = (tool as Record<string, unknown>)[key]
  if (typeof given !== 'function') return tool
  const copy: object = Object.create(Object.getPrototypeOf(tool) as object, Object.getOwnPropertyDescriptors(tool))
  Object.defineProperty(copy, key, { value: replace(given), enumerable: true, configurable: true, writable: true })
  return copy as Tool
}

export interface StreamObserver {
  item(value: unknown): void
  end(): void
  fail(error: unknown): void
}

/** The same iterator, observed. Leaving the loop early ends it too. */
export function observedIterator(
  source: AsyncIterator<unknown>,
  observer: StreamObserver,
): AsyncIterableIterator<unknown> {
  const failed = (error: unknown): never => {
    attempt(() => observer.fail(error))
    throw error
  }
  return {
    async next() {
      const result = await source.next().catch(failed)
      attempt(() => (result.done ? observer.end() : observer.item(result.value)))
      return result
    },
    async return(value?: unknown) {
      attempt(() => observer.end())
      return (await source.return?.(value)) ?? { done: true, value }
    },
    async throw(error?: unknown) {
      attempt(() => observer.fail(error))
      if (source.throw) return source.throw(error)
      throw error
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
