/** Records a model call as an LLM_CALL with its own span. Never throws into the host. */
import { coreOf } from '../border.ts'
import type { Context } from '../recording/context.ts'
import { attempt, type Core, type Leaver } from '../core.ts'
import { isAbort } from '../recording/exception.ts'
import { readSafely } from '../recording/json.ts'
import type { Payload } from '../recording/event.ts'
import type { Recorder } from '../recorder.ts'
import { askedCalls, askedCallsOf, type AskedCalls } from './asked-calls.ts'
import { agentInside, beginPart, set, text, type OfferedTools, type RunPart } from './host.ts'
import type { Usage } from './call-usage.ts'
import { IDLE_MS, openCallsOf, SILENT_MS } from './open-calls.ts'

export interface ModelRequest {
  model?: unknown
  provider?: string | undefined
  messages?: unknown
  /** Names of the tools that the request offers, if they are known. */
  tools?: OfferedTools
}

export interface ModelResult {
  model?: unknown
  usage?: Usage | undefined
  output?: unknown
  cost?: number | undefined
  /** The reason if sums leave the call out: `cache`. */
  notCounted?: string | undefined
  finishReason?: unknown
  /** The answer's messages, items or parts as the provider sent them, of all candidates: read to find tool calls. */
  asked?: unknown
  /** The framework completes JSON that was cut off. */
  isMended?: boolean
  /** Every tool is guarded, by hooks. */
  isGuarded?: boolean
  /** The framework has approvals of its own. */
  hasApprovals?: boolean
}

const UNREADABLE = '[unreadable]'

export class ModelCall {
  readonly #part: RunPart
  readonly #asked: AskedCalls
  readonly #around: Context
  /** The call is not inside a run, so it is a run itself. */
  readonly isOutside: boolean
  #request: ModelRequest
  readonly #begun: number
  #firstToken: number | undefined
  readonly #isSilent: boolean
  isEnded = false
  readonly #left: Leaver
  /** Reads the result from the part of a stream that has arrived. */
  #read: (() => ModelResult) | undefined
  /** The framework waits for the answer, or for the next piece of its stream. */
  isWaiting = true
  hasPieces = false
  touchedAt: number
  #end: () => void = () => undefined
  #ended: Promise<void> | undefined

  /**
   * Reads `request` now, because the host may change it later. @param inside the guarded call around the model call, if
   * it is not `parent`.
   * @param isSilent the framework does not pass errors on to the host.
   */
  constructor(
    tacho: Recorder,
    request: () => ModelRequest,
    {
      parent,
      inside,
      isSilent = false,
    }: { parent?: Context | undefined; inside?: Context | undefined; isSilent?: boolean } = {},
  ) {
    this.#asked = askedCallsOf(tacho)
    this.#request = readSafely<ModelRequest>(request, { messages: UNREADABLE })
    const around = parent ?? coreOf(tacho).context.getStore()
    const acting = around && readSafely(() => this.#agentIn(coreOf(tacho), around, inside), around)
    this.#part = beginPart(tacho, acting)
    this.#around = acting ?? this.#part.context
    this.isOutside = around === undefined
    if (this.isOutside) this.#noteAnswers()
    this.#isSilent = isSilent
    this.#begun = this.touchedAt = this.#now()
    this.#left = { leave: (_reason, ended) => this.#leave(ended) }
    this.#part.core.leavers.add(this.#left)
    openCallsOf(this.#part.core).began(this.context.scope, this)
  }

  get context(): Context {
    return this.#part.context
  }

  within<T>(act: () => T): T {
    return this.#part.core.context.run(this.#part.context, act)
  }

  /** Some frameworks complete the request during the call. */
  complete(request: () => ModelRequest): void {
    this.#request = readSafely(request, this.#request)
    this.#noteAnswers()
  }

  /** Notes the time of the first token. Later calls do nothing. */
  token(): void {
    this.#firstToken ??= this.#now()
  }

  /** Notes a tool call in a streamed answer: a framework may run it before the answer has ended. */
  streams(callId: unknown): void {
    this.#ended ??= new Promise((resolve) => (this.#end = resolve))
    const state = this.isOutside ? undefined : this.context.scope.state
    if (typeof callId === 'string') this.#asked.stream(state, callId, this.#ended)
  }

  /**
   * Sets the reader of a streamed answer's result so far. If its run ends first, the call records this result before the outcome.
   */
  reads(result: () => ModelResult): void {
    const { leavers } = this.#part.core
    this.#read = result
    this.isWaiting = false
    this.touchedAt = this.#now()
    // End a run of its own when the stream is idle, because nothing else ends it.
    if (this.isOutside) this.#endWhenIdle()
    // Move the asked calls behind this call: they are complete only after its end.
    leavers.delete(this.#asked)
    leavers.add(this.#asked)
  }

  /** A piece of the answer has arrived. */
  touch(): void {
    this.isWaiting = false
    this.hasPieces = true
    this.touchedAt = this.#now()
  }

  #endWhenIdle(): void {
    const { runtime } = this.#part.core
    runtime.timer(IDLE_MS, () => {
      if (this.isEnded) return
      const isIdle = this.#now() - this.touchedAt >= (this.isWaiting ? SILENT_MS : IDLE_MS)
      if (isIdle) this.abort()
      else this.#endWhenIdle()
    })
  }

  /** @param ended the run that ends: calls without an answer may outlive it. Undefined: the process ends. */
  #leave(ended: Context['scope'] | undefined): void {
    const isLeft = this.#read !== undefined || this.#now() - this.touchedAt >= SILENT_MS
    if (ended === undefined || (ended === this.context.scope && isLeft)) this.abort()
  }

  end(result: () => ModelResult): void {
    this.#record('COMPLETED', result, {})
  }

  /** `result` is what arrived before the failure. */
  fail(error: unknown, result = this.#read ?? (() => ({}))): void {
    if (isAbort(error)) return this.abort(result)
    this.#record('FAILED', result, { error })
  }

  /** The host stopped reading the stream. */
  abort(result = this.#read ?? (() => ({}))): void {
    this.#record('CANCELLED', () => ({ ...result(), finishReason: 'aborted' }), {})
  }

  #record(status: 'COMPLETED' | 'FAILED' | 'CANCELLED', read: () => ModelResult, more: Payload): void {
    if (this.isEnded) return
    this.isEnded = true
    attempt(() => {
      const { core, context } = this.#part
      core.leavers.delete(this.#left)
      const result = readSafely<ModelResult>(read, { output: UNREADABLE })
      const { tools, ...request } = this.#request
      const model = text(result.model) ?? text(request.model)
      const finishReason = result.finishReason ?? undefined
      // An answer that failed without a finish reason has no complete calls.
      const ended = finishReason ?? (status === 'FAILED' ? 'error' : undefined)
      const calls = readSafely(() => askedCalls(result.asked, ended), [])
      const toolCalls = calls.map(({ id, name, raw, problem }) =>
        set({ id, name, ...(problem !== undefined && { arguments: raw, problem }) }),
      )
      const payload = set({
        ...request,
        model,
        usage: result.usage && set({ ...result.usage }),
        output: result.output,
        cost: result.cost,
        notCounted: result.notCounted,
        finishReason,
        toolCalls: toolCalls.length > 0 ? toolCalls : undefined,
        latency: this.#since(this.#now()),
        timeToFirstOutput: this.#firstToken === undefined ? undefined : this.#since(this.#firstToken),
        // True if the run ended before this call.
        outlivedRun: context.scope.hasEnded,
        ...more,
      })
      core.record(context.scope, { type: 'LLM_CALL', label: model ?? 'model call', payload, span: context.span })
      // A later successful answer clears the failure.
      context.scope.failure = this.#isSilent && 'error' in more ? { error: more['error'] } : undefined
      openCallsOf(core).ended(context.scope, this, {
        goesOn: calls.length > 0,
        isAborted: status === 'CANCELLED',
      })
      const { isMended = false, isGuarded = false, hasApprovals = false } = result
      const facts = { tools, context: this.#around, isOutside: this.isOutside, isMended, isGuarded, hasApprovals }
      this.#asked.add(calls, facts)
      this.#end()
      this.#part.end(status, 'error' in more ? { error: more['error'] } : undefined)
    })
  }

  /** Context of the agent that makes this call. */
  #agentIn(core: Core, around: Context, inside: Context | undefined): Context {
    const { tools, messages } = this.#request
    this.#asked.answered(around.scope.state, messages)
    return this.#asked.agentFor(around.scope.state, messages) ?? agentInside(core, around, tools, inside)
  }

  /** Notes results for calls of earlier answers. */
  #noteAnswers(): void {
    attempt(() => this.#asked.answered(this.#part.context.scope.state, this.#request.messages))
  }

  #now(): number {
    return this.#part.core.runtime.now()
  }

  #since(time: number): number {
    return Math.max(0, time - this.#begun)
  }
}
