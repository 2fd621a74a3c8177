/** An LLM_CALL in a span of its own. Nothing here throws into the host. */
import type { Context } from '../context.ts'
import { attempt } from '../core.ts'
import { isAbort } from '../exception.ts'
import { readSafely } from '../json.ts'
import type { Payload } from '../payload.ts'
import type { Tacho } from '../tacho.ts'
import { beginPart, set, text, type Part } from './host.ts'
import type { Usage } from './call-usage.ts'

export interface ModelRequest {
  model?: unknown
  provider?: string | undefined
  messages?: unknown
}

export interface ModelResult {
  model?: unknown
  usage?: Usage | undefined
  output?: unknown
  cost?: number | undefined
  /** Why no sum counts the call: `cache`. */
  notCounted?: string | undefined
  finishReason?: unknown
}

const UNREADABLE = '[unreadable]'

export class ModelCall {
  readonly #part: Part
  #request: ModelRequest
  readonly #begun: number
  #firstToken: number | undefined
  #isEnded = false

  /** `request` is read now, because the host may change it later. */
  constructor(tacho: Tacho, request: () => ModelRequest, parent?: Context) {
    this.#part = beginPart(tacho, parent)
    this.#request = readSafely<ModelRequest>(request, { messages: UNREADABLE })
    this.#begun = this.#now()
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
  }

  /** Later calls do nothing. */
  token(): void {
    this.#firstToken ??= this.#now()
  }

  end(result: () => ModelResult): void {
    this.#record('COMPLETED', result, {})
  }

  /** `result` is what arrived before. */
  fail(error: unknown, result: () => ModelResult = () => ({})): void {
    if (isAbort(error)) return this.abort(result)
    this.#record('FAILED', result, { error })
  }

  /** The host stopped reading the stream. */
  abort(result: () => ModelResult): void {
    this.#record('CANCELLED', () => ({ ...result(), finishReason: 'aborted' }), {})
  }

  #record(status: 'COMPLETED' | 'FAILED' | 'CANCELLED', read: () => ModelResult, more: Payload): void {
    if (this.#isEnded) return
    this.#isEnded = true
    attempt(() => {
      const { core, context } = this.#part
      const result = readSafely<ModelResult>(read, { output: UNREADABLE })
      const model = text(result.model) ?? text(this.#request.model)
      const payload = set({
        ...this.#request,
        model,
        usage: result.usage && set({ ...result.usage }),
        output: result.output,
        cost: result.cost,
        notCounted: result.notCounted,
        finishReason: result.finishReason ?? undefined,
        latency: this.#since(this.#now()),
        timeToFirstOutput: this.#firstToken === undefined ? undefined : this.#since(this.#firstToken),
        ...more,
      })
      core.record(context.scope, { type: 'LLM_CALL', label: model ?? 'model call', payload, span: context.span })
      this.#part.end(status, 'error' in more ? { error: more['error'] } : undefined)
    })
  }

  #now(): number {
    return this.#part.core.runtime.now()
  }

  #since(time: number): number {
    return Math.max(0, time - this.#begun)
  }
}
