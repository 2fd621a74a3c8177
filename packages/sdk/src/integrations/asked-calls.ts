/**
 * Calls that the answers of models asked for, until their result is known:
 *
 *   asked --the guard begins it--> judged (guarded-call.ts)
 *     |  \--the guard begins it, but it was cut--> refused, never ran
 *     |--the next request answers it, and no guard began it--> never ran
 *     |--its agent fails, and no guard began it--> never ran
 *     |--its run ends, and a person decides in the framework--> waits; a later run continues it
 *     \--its run ends, and it was cut, unreadable, of an unknown tool or unfit--> never ran
 *
 * If no guard has the tool, the host runs the call, and it is unknown whether it ran.
 */
import { coreOf, sharedIn } from '../border.ts'
import { childSpan, type Context } from '../recording/context.ts'
import type { Asked, AskedBefore, Core, Leaver } from '../core.ts'
import { createLoopDetector, type LoopDetector } from '../guard/detectors.ts'
import type { Draft } from '../recording/event.ts'
import { readSafely } from '../recording/json.ts'
import type { RunState } from '../recording/run-state.ts'
import type { IssueReport } from '../delivery/issue-records.ts'
import type { Recorder } from '../recorder.ts'
import type { Fits } from './fits.ts'
import { fields, handOver, text, type OfferedTools } from './host.ts'
import type { Message } from './messages.ts'

interface OpenCall extends Asked {
  readonly context: Context
  /** The model call is not in a run of the host, but is a run itself. */
  isOutside: boolean
  readonly isUnknown: boolean
  /** The model's request offered tools. */
  readonly isOffered: boolean
  /** The framework repairs unreadable arguments. */
  readonly isMended: boolean
  /** Every tool is guarded, for example by hooks. */
  readonly isGuarded: boolean
  /** A person may decline the call in any words. */
  readonly hasApprovals: boolean
  isRecorded: boolean
  /** The call's run was left open to wait for a person's answer. */
  hasWaited?: boolean
  /** Mastra runs the call as an agent, in this context. */
  agent?: Context
}

/** Tools that Mastra makes and runs itself: they are not guarded, and the host does not record them. */
const OF_MASTRA =
  /^(?:(?:agent|workflow)-.|mastra_workspace_|(?:search_tools|load_tool|search_skills|load_skill|updateWorkingMemory)$)/
const AGENT = /^agent-(.+)/

const OPEN_MAX = 1_000
/**
 * Finish reasons after which an answer's calls are complete. Some streams repeat the reason in each piece, so it may
 * occur several times.
 */
const WHOLE = new RegExp(
  `^(?:${'stop stopped stop_sequence stop_token completed complete end_turn end_of_text eos eos_token tool_use tool_call tool_calls function_call pause_turn'.replaceAll(
    ' ',
    '|',
  )})+$`,
)
/** Texts of frameworks for a person who declines without words. */
const DECLINED =
  /^\W*(?:tool call was not approved by the user|tool (?:call )?execution (?:was not approved|denied)|user rejected the tool call for )/i
/** Words of a person who declines. Used only if nothing else can have gone wrong. */
const DECLINING = /\b(?:not approved|denied|declined|rejected)\b/i
/** Beginnings of frameworks' error texts. The text after them may quote any word of a schema. */
const FAULT =
  /^\W*(?:\w*error\b|\w*exception\b|an error occurred|invalid (?:input|json|tool_call|arguments)|tool input validation failed|received tool input|model tried to call|no such tool|unknown tool|tool \S+ not found|\S+ is not a valid tool)/i
const HOOK_ERROR = /^\W*(?:<?tool_use_error|error\b|inputvalidationerror|no such tool)/i
const UNKNOWN =
  /^\W*(?:\w*error\b\W*)*(?:model tried to call unavailable tool|invalid tool_call\b|no such tool|unknown tool|tool \S+ (?:not found|does not exist|is not available)|\S+ is not a valid tool)/i

/**
 * Whether an answer ended by itself; an answer without a finish reason did. @param rawResult the provider's finish
 * reason.
 */
export function isWhole(rawResult: unknown): boolean {
  return typeof rawResult !== 'string' || rawResult === '' || WHOLE.test(rawResult.toLowerCase().replaceAll('-', '_'))
}

/** `finishReason` applies unless a candidate has its own. Without any, the answer counts as ended. */
export function askedCalls(rawResult: unknown, finishReason: unknown): Asked[] {
  return list(rawResult).flatMap((one) => callsIn(one, fields(one)['finish_reason'] ?? finishReason))
}

/** The messages of a chat completion, each with the reason why it ended. */
export function candidatesIn(choices: unknown): Record<string, unknown>[] {
  return list(choices).map((choice) => {
    const { message, finish_reason } = fields(choice)
    return { ...fields(message), finish_reason }
  })
}

const list = (rawList: unknown): unknown[] => (Array.isArray(rawList) ? rawList : [])

function callsIn(candidate: unknown, finishReason: unknown): Asked[] {
  const isCut = !isWhole(finishReason)
  return itemsIn([candidate]).map((item) => {
    const named = fields(item['function'] ?? item['custom'] ?? item)
    const args = named['arguments'] ?? named['input'] ?? named['args']
    const raw = typeof args === 'string' ? args : undefined
    const isText = String(item['type']).startsWith('custom')
    const isReadable = isText || raw === undefined || raw === '' || readSafely(() => (JSON.parse(raw), true), false)
    const isAll = !isCut || (isReadable && item['status'] === 'completed')
    return {
      id: text(item['call_id'] ?? item['callId'] ?? item['toolCallId'] ?? item['id']),
      name: text(named['name'] ?? named['toolName']) ?? 'tool',
      raw: raw ?? readSafely(() => JSON.stringify(args), undefined),
      problem: !isAll ? 'cut' : isReadable ? undefined : 'unreadable',
      isPaused: finishReason === 'pause_turn',
    }
  })
}

const CALLS = new Set(['tool_use', 'tool-call', 'function_call', 'tool_call', 'custom_tool_call'])

/** Messages, items of a response, blocks and parts. Leaves out calls that the provider runs itself. */
function itemsIn(rawList: unknown): Record<string, unknown>[] {
  if (!Array.isArray(rawList)) return []
  return rawList.map(fields).flatMap((item) => {
    if (item['providerExecuted'] === true) return []
    if (CALLS.has(String(item['type']))) return [item]
    if ((item['function'] ?? item['custom']) !== undefined && item['role'] === undefined) return [item]
    return [...itemsIn(item['tool_calls']), ...(item['role'] === undefined ? [] : itemsIn(item['content']))]
  })
}

export function askedCallsOf(tacho: Recorder): AskedCalls {
  const core = coreOf(tacho)
  return sharedIn(core, 'asked', () => new AskedCalls(core))
}

export class AskedCalls implements Leaver, AskedBefore {
  readonly #core: Core
  readonly #open = new Set<OpenCall>()
  /** Whether arguments fit the tool of this name, if its schema can tell. */
  readonly #guarded = new Map<string, Fits>()
  readonly #loops = new WeakMap<RunState, LoopDetector>()
  /** Calls that began before the model's answer had ended or was recorded. */
  readonly #begun = new WeakMap<RunState, Set<string>>()
  /** Calls of answers that still stream, by run and id: they may be incomplete. */
  readonly #streamed = new Map<RunState | undefined, Map<string, Promise<unknown>>>()

  constructor(core: Core) {
    this.#core = core
    core.asked = this
    core.leavers.add(this)
  }

  guard(name: string, fits: Fits = () => undefined): void {
    if (this.#guarded.size < OPEN_MAX || this.#guarded.has(name)) this.#guarded.set(name, fits)
  }

  /** @param tools what the request offered, if known. */
  add(
    calls: readonly Asked[],
    {
      tools,
      ...more
    }: {
      tools: OfferedTools
      context: Context
      isOutside: boolean
      isMended: boolean
      isGuarded: boolean
      hasApprovals: boolean
    },
  ): void {
    for (const call of calls) {
      if (call.id !== undefined && this.#begun.get(more.context.scope.state)?.delete(call.id)) continue
      const isOffered = typeof tools === 'function' ? tools(call.name) : !!tools?.includes(call.name)
      const isUnknown = !isOffered && (typeof tools === 'function' || !!tools?.length)
      this.#open.add({ ...call, ...more, isUnknown, isOffered, isRecorded: false })
    }
    for (const oldest of this.#open) if (this.#open.size > OPEN_MAX) this.#open.delete(oldest)
  }

  /** The guard begins a call. A call with a problem must not run. */
  begin(state: RunState, toolName: string, id: string | undefined, input: unknown): Asked | undefined {
    const call = this.#find(state, toolName, id, input)
    if (!call && id !== undefined) this.#begun.set(state, (this.#begun.get(state) ?? new Set<string>()).add(id))
    if (!call) return undefined
    const isRefused = call.problem === 'cut' || (call.problem === 'unreadable' && call.isMended)
    if (!isRefused) this.#open.delete(call)
    this.#goesOn(call)
    return isRefused ? call : { ...call, problem: undefined }
  }

  /**
   * The answer that contains this call streams until `end`. @param state undefined: its model call is a run of its own.
   */
  stream(state: RunState | undefined, id: string, end: Promise<void>): void {
    const calls = this.#streamed.get(state) ?? new Map<string, Promise<unknown>>()
    if (this.#streamed.size >= OPEN_MAX || calls.size >= OPEN_MAX) return
    this.#streamed.set(state, calls)
    const ends = Promise.all([calls.get(id), end])
    calls.set(id, ends)
    void ends.then(() => {
      if (calls.get(id) === ends) calls.delete(id)
      if (calls.size === 0) this.#streamed.delete(state)
    })
  }

  /** Resolves when the answer with this call has ended. */
  whole(state: RunState | undefined, id: string | undefined): Promise<unknown> | undefined {
    if (id === undefined) return undefined
    return (state && this.#streamed.get(state)?.get(id)) ?? this.#streamed.get(undefined)?.get(id)
  }

  refused(call: Asked, message: string): void {
    const open = [...this.#open].find((one) => one.id === call.id && one.name === call.name && one.raw === call.raw)
    if (open) this.#neverRan(open, open.problem ?? 'cut', message)
  }

  /** Reads the results of calls from the messages of the next request. */
  answered(state: RunState, messages: unknown): void {
    if (this.#open.size === 0 || !Array.isArray(messages)) return
    for (const { role, toolCallId, content } of messages.slice(-OPEN_MAX) as Message[]) {
      if (role !== 'tool') continue
      const call = [...this.#open].findLast(({ id, ...one }) => id === toolCallId && isIn(one, state))
      if (!call) continue
      this.#open.delete(call)
      const message = textIn(content)
      const isDenied = fields(content)['type'] === 'execution-denied'
      // If a hook was not asked, the tool may have run. Only an error shows that it did not.
      const isKnown =
        (call.isGuarded && HOOK_ERROR.test(message)) ||
        this.#guarded.has(call.name) ||
        call.isUnknown ||
        call.problem !== undefined
      if (isKnown) this.#neverRan(call, isDenied ? 'declined' : this.#reasonOf(call, message), message)
      else if (OF_MASTRA.test(call.name)) this.#ran(call, content)
      this.#goesOn(call)
    }
  }

  /**
   * The call of an agent that Mastra runs as a tool, found by its prompt. Undefined: these messages belong to no such
   * agent.
   */
  agentFor(state: RunState, messages: unknown): Context | undefined {
    if (this.#open.size === 0 || !Array.isArray(messages)) return undefined
    const prompt = (messages as Message[]).findLast(({ role }) => role === 'user')?.content
    const call = [...this.#open].findLast(
      (one) => isIn(one, state) && AGENT.test(one.name) && fields(inputOf(one))['prompt'] === prompt,
    )
    if (!call || prompt === undefined) return undefined
    const span = childSpan(this.#core.ids.span(), call.context.span)
    const name = AGENT.exec(call.name)?.[1] as string
    return (call.agent ??= handOver(this.#core, { ...call.context, span }, name, call.id))
  }

  /** The agent that runs this span's calls failed, so calls that no guard began never ran. */
  failed({ scope, span }: Context, message: string): void {
    for (const call of this.#open) {
      const { scope: askedIn, span: around } = call.context
      if (askedIn !== scope || (around.spanId !== span.spanId && around.parentSpanId !== span.spanId)) continue
      const reason = this.#faultOf(call)
      if (reason !== undefined || this.#guarded.has(call.name)) this.#neverRan(call, reason, message)
      this.#open.delete(call)
    }
  }

  /** A framework runs a call of such a tool itself. @returns the call's id. */
  take(state: RunState, isIt: (name: string) => boolean): string | undefined {
    const call = [...this.#open].findLast((one) => isIn(one, state) && isIt(one.name))
    if (call) this.#open.delete(call)
    return call?.id
  }

  askedIn(state: RunState, id: string | undefined): Context | undefined {
    return id === undefined ? undefined : [...this.#open].findLast((one) => one.id === id && isIn(one, state))?.context
  }

  waiting(scope: Context['scope']): Draft | undefined {
    const call = [...this.#open].find((one) => one.context.scope === scope && this.#waits(one))
    if (!call) return undefined
    const payload = { waitingFor: 'approval', toolName: call.name, toolCallId: call.id }
    return { type: 'WAITING', label: `${call.name} waits for a person`, payload, isLast: true }
  }

  /**
   * Whether the call waits for a person. Frameworks with approvals run every other call of a guarded tool themselves.
   */
  #waits(call: OpenCall): boolean {
    return call.hasApprovals && this.#guarded.has(call.name) && !call.isRecorded && this.#faultOf(call) === undefined
  }

  /** The run ends: reports calls that failed before their tool ran, also if no request followed. */
  leave(reason: string, ended?: Context['scope']): void {
    for (const call of this.#open) {
      if (ended !== undefined && call.context.scope !== ended) continue
      const fault = this.#faultOf(call)
      if (fault !== undefined) this.#neverRan(call, fault, undefined)
      if (reason === 'handed_over' && this.#waits(call)) call.isOutside = call.hasWaited = true
      // A guard outside a run may still begin it.
      if (!call.isOutside) this.#open.delete(call)
    }
  }

  /** A person's answer arrived in another run, so the run that waited for it is over. */
  #goesOn({ hasWaited, context: { scope } }: OpenCall): void {
    if (!hasWaited || this.#core.context.getStore()?.scope.runId === scope.runId) return
    this.#core.record(scope, { type: 'SESSION_OUTCOME', label: 'completed', payload: { status: 'COMPLETED' } })
  }

  #find(state: RunState, toolName: string, id: string | undefined, input: unknown): OpenCall | undefined {
    const open = [...this.#open].filter((call) => isIn(call, state))
    if (id !== undefined) return open.findLast((call) => call.id === id)
    const openCalls = open.filter(({ name }) => name === toolName)
    const inputJson = readSafely(() => JSON.stringify(input), undefined)
    const whole = (raw: string) => readSafely(() => JSON.stringify(JSON.parse(raw)), undefined)
    const isSame = ({ raw }: OpenCall) =>
      raw !== undefined && (raw === fields(input)['input'] || whole(raw) === inputJson)
    return openCalls.find(isSame) ?? openCalls.find(({ problem }) => problem === undefined)
  }

  /** The framework ran the call itself. */
  #ran(call: OpenCall, content: unknown): void {
    const { context, name: toolName, id: toolCallId, agent } = call
    const isFailed = String(fields(content)['type']).startsWith('error')
    const result = isFailed
      ? { outcome: 'failed', error: { message: textIn(content) } }
      : { outcome: 'returned', output: content }
    const payload = { toolName, toolCallId, input: inputOf(call), ...result }
    const span = { ...(agent?.span ?? childSpan(this.#core.ids.span(), context.span)), marks: context.span.marks }
    this.#core.record(context.scope, { type: 'TOOL_CALL', label: toolName, payload, span })
  }

  #neverRan(call: OpenCall, reasonCode: string | undefined, message: string | undefined): void {
    if (call.isRecorded) return
    call.isRecorded = true
    const { context, name: toolName, id: toolCallId, raw } = call
    const span = childSpan(this.#core.ids.span(), context.span)
    const error = message === undefined ? {} : { error: { message } }
    const payload = { toolName, toolCallId, outcome: 'never_ran', reasonCode, arguments: raw, ...error }
    const eventId = this.#core.record(context.scope, { type: 'TOOL_CALL', label: toolName, payload, span })
    if (reasonCode === 'declined') return
    const report = (issue: IssueReport) => this.#core.control?.report(context.scope, issue)
    this.#core.context.run({ scope: context.scope, span }, () => {
      report({ detectionType: 'TOOL_FAILED', payload: { toolName, reasonCode }, eventId })
      const loop = this.#loopOf(context.scope.state)?.observe(toolName, raw ?? '')
      if (!loop?.isNew) return
      const evidence = { decision: loop.action }
      report({
        detectionType: loop.type,
        payload: { toolName, reasonCode: loop.reasonCode },
        evidence,
      })
    })
  }

  /** The fault of the call itself, regardless of its answers. */
  #faultOf({ problem, isUnknown, isPaused, ...call }: OpenCall): string | undefined {
    if (problem) return problem
    if (isUnknown) return 'unknown_tool'
    if (isPaused) return 'cut'
    return this.#fits(call) === false ? 'unfit' : undefined
  }

  /** Why a call never ran, according to its answer. */
  #reasonOf(call: OpenCall, message: string): string {
    const fault = this.#faultOf(call)
    if (fault !== undefined) return fault
    if (DECLINED.test(message)) return 'declined'
    if (!call.isOffered && UNKNOWN.test(message)) return 'unknown_tool'
    if (FAULT.test(message)) return 'unfit'
    return call.hasApprovals || (this.#fits(call) && DECLINING.test(message)) ? 'declined' : 'unfit'
  }

  #fits({ name, raw }: Pick<Asked, 'name' | 'raw'>): boolean | undefined {
    return readSafely(() => this.#guarded.get(name)?.(raw ?? ''), undefined)
  }

  #loopOf(state: RunState): LoopDetector | null {
    const { loop = {} } = this.#core.options.guard ?? {}
    if (loop === false) return null
    const detector = this.#loops.get(state) ?? createLoopDetector(loop, state.recentCalls)
    this.#loops.set(state, detector)
    return detector
  }
}

function isIn({ isOutside, context }: Pick<OpenCall, 'isOutside' | 'context'>, state: RunState): boolean {
  return isOutside || context.scope.state === state
}

function inputOf({ raw }: Asked): unknown {
  return readSafely(() => JSON.parse(raw ?? '') as unknown, raw)
}

function textIn(content: unknown): string {
  const whole = fields(content)['value'] ?? content
  return typeof whole === 'string' ? whole : (readSafely(() => JSON.stringify(whole), undefined) ?? '')
}
