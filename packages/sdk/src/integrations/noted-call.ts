/**
 * If a framework reports a model call and its client is recorded too, both are one call. Only the framework's call is
 * recorded.
 */
import { coreOf, sharedIn } from '../border.ts'
import type { Core } from '../core.ts'
import { readSafely } from '../recording/json.ts'
import type { Recorder } from '../recorder.ts'
import { messagesOf } from './messages.ts'
import { ModelCall, type ModelRequest, type ModelResult } from './model-call.ts'

/** Methods of a call that an observed stream needs. */
export type ClientCall = Pick<
  ModelCall,
  'isWaiting' | 'within' | 'touch' | 'token' | 'streams' | 'reads' | 'end' | 'fail' | 'abort'
>

/** Calls that frameworks have reported and no client has made yet. */
const waitingIn = (core: Core) => sharedIn(core, 'framework-calls', () => new Set<FrameworkCall>())

interface FrameworkCall {
  readonly call: ModelCall
  /** Reads the request when the client is called. */
  request(): ModelRequest
}

const WAITING_MAX = 1_000

/** Notes the call, because the client below the framework may be recorded too. */
export function awaitClient(tacho: Recorder, call: ModelCall, request: () => ModelRequest): void {
  const calls = waitingIn(coreOf(tacho))
  for (const one of calls) if (one.call.isEnded || calls.size >= WAITING_MAX) calls.delete(one)
  calls.add({ call, request })
}

export function clientCall(tacho: Recorder, request: () => ModelRequest): ClientCall {
  const core = coreOf(tacho)
  const calls = waitingIn(core)
  if (calls.size === 0) return new ModelCall(tacho, request)
  const asked = readSafely<ModelRequest>(request, {})
  const state = core.context.getStore()?.scope.state
  const around = [...calls].find(
    ({ call, request: known }) =>
      !call.isEnded &&
      (call.isOutside || state === undefined || call.context.scope.state === state) &&
      readSafely(() => isSame(known(), asked), false),
  )
  if (!around) return new ModelCall(tacho, request)
  calls.delete(around)
  return new NotedCall(around.call)
}

function isSame(a: ModelRequest, b: ModelRequest): boolean {
  const last = ({ messages }: ModelRequest) => JSON.stringify(messagesOf(messages).at(-1)?.content)
  return (a.model === undefined || a.model === b.model) && last(a) === last(b)
}

class NotedCall implements ClientCall {
  readonly #around: ModelCall

  constructor(around: ModelCall) {
    this.#around = around
  }

  set isWaiting(isWaiting: boolean) {
    this.#around.isWaiting = isWaiting
  }

  within<T>(act: () => T): T {
    return act()
  }

  touch(): void {
    this.#around.touch()
  }

  token(): void {
    this.#around.token()
  }

  streams(callId: unknown): void {
    this.#around.streams(callId)
  }

  /** The framework may lose the pieces of a stream that does not end. */
  reads(result: () => ModelResult): void {
    this.#around.reads(result)
  }

  end(result: () => ModelResult): void {
    this.#around.reads(result)
  }

  /** Do nothing: the framework reports the failure, or retries. */
  fail(): void {}

  abort(): void {}
}
