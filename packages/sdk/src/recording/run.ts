import { childSpan, type Context, type RunScope, type Span } from './context.ts'
import { attempt, leaveCalls, type Core } from '../core.ts'
import { untilEnd, type Failure } from '../delivery/ending.ts'
import { draftOf, type Draft, type NewEvent, type Payload, type ScoreDetails, type ScoreValue } from './event.ts'
import { exceptionOf, isAbort } from './exception.ts'
import { errorText, fieldsOf, isError, joined, readSafely } from './json.ts'
import { LIMITS } from '../limits.ts'
import { activeTrace, traceOf, traceparentOf } from './open-telemetry.ts'
import type { CarriedState } from './carried-state.ts'
import { createRunState } from './run-state.ts'
import { isSampled } from './sampling.ts'
import { noteUnknown } from '../delivery/diagnostics.ts'
import { cutText, wellFormed } from './text.ts'

export type Outcome = 'COMPLETED' | 'FAILED' | 'CANCELLED'

export interface RunOptions {
  /** 1 to 255 characters. Default: a new UUIDv7. Set it to continue a run that began elsewhere. */
  runId?: string | undefined
  /** Groups related runs, for example one conversation. At most 1,024 characters, like the next two. */
  sessionId?: string | undefined
  /** Default: the client's. */
  agentId?: string | undefined
  /** Default: the client's. */
  agentName?: string | undefined
  /** The parent span of this part of the run, in the process that began the run. */
  parentSpanId?: string | undefined
  /** W3C Trace Context: the header `traceparent` of the request that the run serves. Its events name that trace. */
  traceparent?: string | undefined
  /** Usage of the run in other processes: policies and budgets count it too. Costs in US dollars. */
  usedBefore?:
    | {
        toolCalls?: number | undefined
        totalTokens?: number | undefined
        cost?: number | undefined
        seconds?: number | undefined
        /** Labels of what they read. Absent: unknown. Null: conditions on the past fail. */
        labels?: readonly string[] | null | undefined
      }
    | undefined
}

/**
 * State with which another process can continue a run: plain JSON, the same in every SDK. It contains the arguments of calls
 * that wait for a person, unmasked: store it with your conversations.
 */
export interface RunHandle extends CarriedState {
  readonly runId: string
  readonly sessionId?: string | undefined
  readonly agentId?: string | undefined
  readonly agentName: string
  /** The span that was current when the handle was made. */
  readonly parentSpanId: string
  /** W3C Trace Context of the span of OpenTelemetry that was active then. */
  readonly traceparent?: string | undefined
}

/** A call that has ended. Its event has the time of its end. */
interface EndedCall {
  /** When it began. Not part of the payload. Without a `latency`, the call ends now. */
  startedAt?: Date | number | undefined
  /** Milliseconds. */
  latency?: number | undefined
  [key: string]: unknown
}

/** Payload of LLM_CALL. Other keys are recorded too. */
export interface LlmCall extends EndedCall {
  model?: string | undefined
  /** In US dollars: a number from 0 to 1,000,000. */
  cost?: number | undefined
  usage?:
    | { promptTokens?: number | undefined; completionTokens?: number | undefined; totalTokens?: number | undefined }
    | undefined
  messages?: unknown
  output?: unknown
}

/** Payload of TOOL_CALL. Other keys are recorded too. */
export interface ToolCall extends EndedCall {
  toolName: string
  input?: unknown
  output?: unknown
  /** An Error, or any text or JSON. */
  error?: unknown
  inputHash?: string | undefined
  approvalId?: string | undefined
}

/** A span while it is open. */
export interface OpenSpan {
  readonly spanId: string
  /** Adds fields to the payload of the event that the span records when it ends. The latest value of a field counts. */
  set(fields: Payload): void
}

/** An agent execution. No method throws or waits. Recording methods return the event's id; undefined if it was dropped. */
export class Run {
  /** @internal Published code is minified, which would shorten it. */
  static readonly name: string = 'Run'
  readonly #core: Core
  readonly #scope: RunScope
  #isEnded = false

  /** @internal Created by `Tacho`. */
  constructor(core: Core, scope: RunScope) {
    this.#core = core
    this.#scope = scope
  }

  get runId(): string {
    return this.#scope.runId
  }

  get sessionId(): string | undefined {
    return this.#scope.sessionId
  }

  /**
   * W3C Trace Context, for the header `traceparent` of your own requests: the active span of OpenTelemetry, or else the current
   * span of this run, in the trace of the run. If the run has no trace, this begins one, which later events name.
   */
  get traceparent(): string {
    const trace = activeTrace()
    if (trace) return traceparentOf(trace)
    const { spanId } = this.#span()
    const { isSampled } = this.#scope
    const ownSpan = { traceId: this.#core.ids.uuid().replaceAll('-', ''), spanId, traceFlags: Number(isSampled) }
    return traceparentOf({ ...(this.#scope.trace ??= ownSpan), spanId })
  }

  /** The user's message: `payload.text`. */
  userInput(text: string, payload?: Payload): string | undefined {
    return this.#add(() => ({ type: 'USER_INPUT', label: 'user input', payload: joined({ text }, payload) }))
  }

  /** A step of the agent: a plan, a thought, a hand-over. */
  step(label: string, payload?: Payload): string | undefined {
    return this.record({ type: 'AGENT_STEP', label, payload })
  }

  /** A completed model call. */
  llmCall(call: LlmCall): string | undefined {
    return this.#add(() => ({ type: 'LLM_CALL', label: call.model ?? 'model call', ...this.#timed(call) }))
  }

  /** A completed tool call. `guard` records its own calls. */
  toolCall(call: ToolCall): string | undefined {
    return this.#add(() => ({ type: 'TOOL_CALL', label: call.toolName, ...this.#timed(call) }))
  }

  /** An error: `payload.message`, and `payload.code` if the error has a code. */
  error(error: unknown, payload?: Payload): string | undefined {
    return this.#add(() => {
      const { name, message } = isError(error) ? error : { name: 'error', message: errorText(error) }
      const code = (error as { code?: unknown } | null | undefined)?.code
      const exception = isError(error) && { exception: exceptionOf(error) }
      const facts = joined({ message }, code !== undefined && { code }, exception, payload)
      return { type: 'ERROR', label: name, payload: facts }
    })
  }

  /** Records any event. */
  record(event: NewEvent): string | undefined {
    return this.#add(() => draftOf(this.#core.diagnostics, event))
  }

  /**
   * Says how good this run is, or one step of it. The latest counts for each name, step and author. `scoreDetails`: a comment,
   * or more.
   */
  score(name: string, value: ScoreValue, scoreDetails?: string | ScoreDetails): string | undefined {
    return this.#core.score(this.#scope, name, value, scoreDetails)
  }

  /** Adds keys to the payload of every later event of this run, unless the payload has them already. */
  annotate(values: Payload): void {
    attempt(() => {
      for (const [key, value] of fieldsOf(values)) this.#scope.annotations.set(key, value)
    })
  }

  /**
   * Runs `act` in a child span of the current one. When it ends, records an AGENT_STEP with its `latency` and fields.
   * Returns or throws what `act` returns or throws.
   */
  span<T>(name: string, act: (span: OpenSpan) => T): T {
    const span = childSpan(this.#core.ids.span(), this.#span())
    const { now } = this.#core.runtime
    const begun = now()
    let payload: Payload = {}
    const open: OpenSpan = { spanId: span.spanId, set: (fields) => attempt(() => (payload = joined(payload, fields))) }
    const record = (failure?: { error: unknown }): void => {
      const latency = now() - begun
      this.#add(() => ({ type: 'AGENT_STEP', label: name, payload: joined({ latency }, failure, payload), span }))
    }
    return untilEnd(
      () => act(open),
      (step) => this.#core.context.run({ scope: this.#scope, span }, step),
      record,
    )
  }

  /** Runs `act` with this run as the current one. Records no outcome. */
  within<T>(act: (run: Run) => T): T {
    return this.#core.context.run({ scope: this.#scope, span: this.#span() }, () => act(this))
  }

  /** Handle with which another process can continue this run: pass it to `tacho.resume`. */
  toHandle(): RunHandle {
    this.#core.openRuns.delete(this)
    return handleOf(this.#core, { scope: this.#scope, span: this.#span() })
  }

  /** Records the outcome once; later calls do nothing. */
  end(status?: Outcome, payload?: Payload): string | undefined
  /** @internal */
  end(status?: Outcome, payload?: Payload, at?: number): string | undefined
  end(status: Outcome = 'COMPLETED', payload?: Payload, at?: number): string | undefined {
    if (this.#isEnded) return undefined
    this.#isEnded = true
    this.#core.openRuns.delete(this)
    leaveCalls(this.#core, this.#scope, 'run_ended')
    const { sampleRate } = this.#core.settings
    return this.#add(() => {
      const facts = joined(payload, sampleRate < 1 && { sampleRate }, { status })
      return { type: 'SESSION_OUTCOME', label: String(status).toLowerCase(), payload: facts, at }
    })
  }

  /** @internal Ends it with what was thrown. */
  fail(status: Outcome, { error }: Failure): void {
    this.end(status, { error, exception: exceptionOf(error) })
  }

  /** @internal Another process, or a later call in this one, continues and ends the run. */
  handOver(left?: Draft): void {
    this.#core.openRuns.delete(this)
    leaveCalls(this.#core, this.#scope, 'handed_over')
    if (left) this.#add(() => left)
    else this.leave()
  }

  /** @internal Ends it, unless it waits for a person. */
  complete(at?: number): void {
    const waits = !this.#isEnded && this.#core.asked?.waiting(this.#scope)
    if (waits) this.handOver(waits)
    else this.end('COMPLETED', undefined, at)
  }

  /** Says that this process records nothing more of the run, which another one ends. */
  leave(): string | undefined {
    return this.#add(() => ({ type: 'AGENT_STEP', label: 'left the run', isLast: true }))
  }

  #add(draft: () => Draft): string | undefined {
    return this.#core.record(this.#scope, draft)
  }

  #timed(payload: EndedCall): Pick<Draft, 'payload' | 'at'> {
    const begun = Number(payload.startedAt ?? NaN)
    if (!Number.isFinite(begun)) return { payload }
    const { latency = Math.max(0, this.#core.runtime.now() - begun) } = payload
    return { payload: joined(payload, { startedAt: undefined, latency }), at: begun + Number(latency) }
  }

  #span(): Span {
    const current = this.#core.context.getStore()
    return current?.scope === this.#scope ? current.span : this.#scope.span
  }
}

/** @internal */
export function handleOf(core: Core, { scope, span: { spanId: parentSpanId } }: Context): RunHandle {
  const { runId, sessionId, agentId, agentName } = scope
  const trace = activeTrace() ?? scope.trace
  const traceparent = trace && { traceparent: traceparentOf(trace) }
  const carried = core.carrying?.carried(scope) ?? scope.handed
  return { ...carried, runId, sessionId, agentId, agentName, parentSpanId, ...traceparent }
}

const OPTIONS = ['runId', 'sessionId', 'agentId', 'agentName', 'parentSpanId', 'traceparent', 'usedBefore']

/** @internal How a run ends that throws this. */
export function outcomeOf(error: unknown): Outcome {
  return isAbort(error) ? 'CANCELLED' : 'FAILED'
}

/**
 * @internal The fields that the events of a run share. Never drops a run for a faulty id: replaces or cuts the id, and
 * reports it.
 */
export function createScope(core: Core, runOptions: RunOptions, handle?: RunHandle): RunScope {
  const { settings, ids, diagnostics } = core
  const options = readSafely(() => ({ ...runOptions }), {})
  if (!handle) noteUnknown(diagnostics, 'A run', options, OPTIONS)

  function text(
    name: Exclude<keyof (RunOptions & RunHandle), keyof Omit<CarriedState, 'clientId'> | 'usedBefore' | 'traceparent'>,
    byDefault: string | undefined,
    maxChars: number,
  ): string | undefined {
    const value: unknown = (options as Readonly<Record<string, unknown>>)[name] ?? byDefault
    const givenText = typeof value === 'string' ? value : byDefault
    // Return the text as recorded, so that a stop of an agent by its recorded name also matches here.
    const cut = givenText && wellFormed(cutText(givenText, maxChars))
    if (givenText === value && cut?.length === givenText?.length) return cut
    diagnostics.report('warning', 'text_cut', `${name} must be a text of at most ${maxChars} characters.`)
    return cut
  }

  const sessionId = text('sessionId', undefined, LIMITS.textChars)
  const agentId = text('agentId', settings.agentId, LIMITS.textChars)
  const agentName = text('agentName', settings.agentName, LIMITS.textChars) ?? settings.agentName
  const runId = runIdOf(core, options.runId)
  const { clientId, schemaVersion } = settings
  const spanId = ids.span()
  const scope = {
    runId,
    sessionId,
    agentId,
    agentName,
    isSampled: isSampled(runId, settings.sampleRate),
    json: JSON.stringify({ clientId, runId, sessionId, agentId, agentName, schemaVersion }).slice(1, -1),
    span: { spanId, parentSpanId: text('parentSpanId', undefined, LIMITS.textChars) },
    recorder: { id: recorderIdOf(spanId), count: 0 },
    annotations: new Map(),
    state: (handle && core.carrying?.resumed(runId, options as CarriedState)) ?? createRunState(),
    handed: handle && (options as CarriedState),
    approvalClientId: (handle && text('clientId', clientId, LIMITS.clientIdChars)) ?? clientId,
    trace: traceOf(options.traceparent),
    usedBefore: options.usedBefore,
    enteredAt: handle ? undefined : core.runtime.now(),
  }
  // The time of the run counts from now.
  core.carrying?.usages.atLeast(scope, scope.handed?.used)
  return scope
}

/** Five characters in base 36 make an event 13 to 16 bytes longer, and distinguish 60 million recorders of a run. */
function recorderIdOf(spanId: string): string {
  return Number.parseInt(spanId.slice(0, 13), 16).toString(36).slice(-5).padStart(5, '0')
}

/** A run id that is too long is not cut, because two runs could become one. */
function runIdOf({ ids, diagnostics }: Core, runOptions: unknown): string {
  if (typeof runOptions === 'string' && runOptions !== '' && cutText(runOptions, LIMITS.runIdChars) === runOptions)
    return wellFormed(runOptions)
  const runId = ids.uuid()
  if (runOptions === undefined) return runId
  diagnostics.report('error', 'invalid_run_id', `runId must be a text of 1 to 255 characters: recorded as ${runId}.`)
  return runId
}
