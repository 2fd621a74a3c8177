/** Reads values of a framework, and never throws into the host. */
import { coreIn, coreOf, sharedIn } from '../border.ts'
import type { Context, Span } from '../recording/context.ts'
import { attempt, type Core } from '../core.ts'
import { ToolBlockedError } from '../guard/blocked.ts'
import { readSafely } from '../recording/json.ts'
import { beginPart as childPart, enclosingPart as ownPart, type RunPart } from '../recording/part.ts'
import type { RunOptions } from '../recording/run.ts'
import type { StopSignal } from '../delivery/runtime.ts'
import type { Recorder } from '../recorder.ts'
import type { Tacho } from '../tacho.ts'
import { openCallsOf } from './open-calls.ts'

export type { RunPart }
export type Fields = Readonly<Record<string, unknown>>

/** The fields of an object; an empty object for any other value. */
export function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

export function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

export function number(...values: unknown[]): number | undefined {
  return values.find((value): value is number => typeof value === 'number' && Number.isFinite(value))
}

export function set(members: Fields): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}

/** The current span. Outside a run, the span of a new run. */
export function enclosingPart(tacho: Recorder, options?: RunOptions): RunPart {
  return ownPart(coreOf(tacho), undefined, options)
}

/** A child span of `parent`, by default of the current span. Outside a run, the span of a new run. */
export function beginPart(tacho: Recorder, parent?: Context, options?: RunOptions): RunPart {
  return childPart(coreOf(tacho), parent, options)
}

/** Names of the tools, or an object that knows them; undefined if unknown. */
export type OfferedTools = readonly string[] | ((name: string) => boolean) | undefined

/** Undefined if the request has no tools. */
export function toolNames(tools: unknown): string[] | undefined {
  if (!Array.isArray(tools)) return undefined
  const names = tools.map((tool) => text(fields(fields(tool)['function'])['name']) ?? text(fields(tool)['name']))
  // A tool of the provider has no name in the request, so a call with any name may belong to it.
  return names.includes(undefined) ? undefined : (names as string[])
}

const OPEN_MAX = 10_000

/** Open spans by id. Forgets the oldest ones, because some never end. */
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
  /** The model's id of the call. An approval belongs to this id, also in the next process. */
  callId?: unknown
}

/** Undefined for an id that cannot come from a provider. */
export function keyOf(callId: unknown): string | undefined {
  return typeof callId === 'string' && CALL_ID.test(callId) ? callId : undefined
}

const CALL_ID = /^[\x21-\x7e]{1,255}$/

/**
 * @param act gets the input that was judged.
 * @returns what `act` returns, or what `onBlocked` makes of the refusal.
 * @throws whatever `act` throws.
 */
export async function guarded<T>(
  tacho: Tacho,
  { parent, callId, ...call }: GuardedCall,
  act: (input: unknown) => T,
  onBlocked: (error: ToolBlockedError) => Awaited<T>,
): Promise<Awaited<T>> {
  const core = coreIn(tacho)
  const key = readSafely(() => keyOf(callId), undefined)
  const actsIn = (await whereToolActs(core, key, parent).catch(() => undefined)) ?? parent
  let made: { readonly result: T } | undefined
  const run = (input: unknown) => {
    attempt(() => {
      const { span } = core?.context.getStore() ?? {}
      if (core && span) runningIn(core).set(span, { toolName: call.name, toolCallId: key })
    })
    made = { result: act(input) }
    attempt(() => {
      const { scope } = parent ?? core?.context.getStore() ?? {}
      if (core && scope) openCallsOf(core).tool(scope, made?.result)
    })
    return made.result
  }
  const guard = () => tacho.guardedCall({ ...call, key, hasDates: true, call: run })
  try {
    return await (core && actsIn ? core.context.run(actsIn, guard) : guard())
  } catch (error) {
    const ownOutcome = made ? await outcomeOf(made.result) : { error }
    if (!('error' in ownOutcome)) return ownOutcome.result
    if (readSafely(() => ownOutcome.error instanceof ToolBlockedError, false))
      return onBlocked(ownOutcome.error as ToolBlockedError)
    throw ownOutcome.error
  }
}

/** Awaits a tool and keeps its result or error apart from later failures. */
async function outcomeOf<T>(madeResult: T): Promise<{ result: Awaited<T> } | { error: unknown }> {
  try {
    return { result: await madeResult }
  } catch (error) {
    return { error }
  }
}

/** Where the call's agent acts. Undefined if no agent is known. */
async function whereToolActs(
  core: Core | undefined,
  key: string | undefined,
  parent: Context | undefined,
): Promise<Context | undefined> {
  if (!core) return undefined
  const { context, asked } = core
  const around = parent ?? context.getStore()
  const state = around?.scope.state
  await asked?.whole(state, key)
  if (!around) return undefined
  const { scope, span } = around
  const asking = asked?.askedIn(scope.state, key)
  const agent = asking?.span.marks?.agent ?? runningIn(core).get(span)?.agent?.span.marks?.agent
  // A framework that reports agents through traces calls their tools in the context where the run began.
  const isInTrace = asking?.scope === scope && span.spanId === scope.span.spanId
  const acting = isInTrace ? { ...around, span: asking.span } : around
  return agent !== undefined ? withAgent(acting, agent) : acting
}

/** Guarded calls that run now, by their span. */
const runningIn = (core: Core) =>
  sharedIn(
    core,
    'running',
    () => new WeakMap<Span, { toolName: string; toolCallId: string | undefined; agent?: Context }>(),
  )

/** If a model is called with its own tools inside a guarded call, the tool is another agent. Returns its context. */
export function agentInside(core: Core, around: Context, tools: OfferedTools, inside = around): Context {
  const call = runningIn(core).get(inside.span)
  if (call && tools !== undefined && tools.length > 0) {
    call.agent ??= handOver(core, inside, call.toolName, call.toolCallId)
  }
  // The agent of an earlier request: later requests of a thread may not contain the tools.
  const agent = call?.agent?.span.marks?.agent
  return agent === undefined ? around : withAgent(around, agent)
}

/** Records a handoff in the context's span. @returns the context of the new agent. */
export function handOver(core: Core, context: Context, to: string, toolCallId: string | undefined): Context {
  const { scope, span } = context
  const from = span.marks?.agent ?? scope.agentName
  core.record(scope, { type: 'HANDOFF', label: `${from} to ${to}`, payload: set({ from, to, toolCallId }), span })
  return withAgent(context, to)
}

/** The same context with the agent's name, for later events. */
export function withAgent({ span, ...context }: Context, agent: string): Context {
  return { ...context, span: { ...span, marks: { ...span.marks, agent } } }
}

/** Replaces a function of a tool. Keeps the prototype, by which the framework recognises its tools. */
export function withFunction<Tool extends object>(
  tool: Tool,
  key: string,
  replace: (given: Function) => Function,
): Tool {
  const toolMember = (tool as Record<string, unknown>)[key]
  if (typeof toolMember !== 'function') return tool
  const replaced = replace(toolMember)
  // A framework may name a tool after its function.
  Object.defineProperty(replaced, 'name', { value: toolMember.name, configurable: true })
  return withProperty(tool, key, replaced)
}

/**
 * A copy with another property value. Copies frozen objects too. A hidden property stays hidden, because a framework
 * may clone or send visible ones.
 */
export function withProperty<Owner extends object>(owner: Owner, key: string, value: unknown): Owner {
  const enumerable = Object.getOwnPropertyDescriptor(owner, key)?.enumerable ?? true
  const property = { value, enumerable, configurable: true, writable: true }
  const properties = { ...Object.getOwnPropertyDescriptors(owner), [key]: property }
  return Object.create(Object.getPrototypeOf(owner) as object, properties) as Owner
}
