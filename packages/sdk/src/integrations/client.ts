/** Records the OpenAI and the Anthropic client, which have the same base class. */
import { canRecord, coreOf, isMarked, mark } from '../border.ts'
import { attempt } from '../core.ts'
import type { Recorder } from '../recorder.ts'
import { readSafely } from '../recording/json.ts'
import { fields, text, type Fields } from './host.ts'
import { hostCall } from './host-call.ts'
import type { ModelRequest, ModelResult } from './model-call.ts'
import { ModelStream, type Collector } from './model-stream.ts'
import { clientCall, type ClientCall } from './noted-call.ts'
import { openCallsOf } from './open-calls.ts'
import { isResponse } from '../recording/streamed-result.ts'

export interface Method {
  /** Path to the method, for example `['chat', 'completions', 'create']`. */
  path: readonly string[]
  request(body: Fields): ModelRequest
  result(answer: Fields): ModelResult
  /** Collects the items of a stream. */
  stream(): Collector
}

/** Helpers of the client (`stream`, `parse`, runners) call these methods, so they are recorded too. */
export function recordMethods<Client extends object>(
  client: Client,
  tacho: Recorder,
  methods: readonly Method[],
): Client {
  if (!canRecord(tacho, 'Model calls')) return client
  openCallsOf(coreOf(tacho))
  for (const method of methods) attempt(() => replace(client, tacho, method))
  return client
}

type Create = (this: unknown, body: unknown, ...more: unknown[]) => unknown

/** Marks a method that is recorded already. */
const RECORDED = Symbol.for('tacho.recorded')

function replace(client: object, tacho: Recorder, method: Method): void {
  const { path } = method
  const owner = path.slice(0, -1).reduce<unknown>((at, name) => fields(at)[name], client) as Record<string, unknown>
  const name = path.at(-1) ?? ''
  const create = fields(owner)[name]
  if (typeof create !== 'function' || isMarked(create, RECORDED)) return
  const recorded: Create = function recorded(...callArguments) {
    return hostCall(tacho, {
      begin: () => clientCall(tacho, () => method.request(fields(callArguments[0]))),
      call: () => (create as Create).apply(this, callArguments),
      observe(call, promise) {
        observe(promise, call, method)
        return promise
      },
    })
  }
  mark(recorded, RECORDED)
  owner[name] = recorded
}

interface ApiPromise extends PromiseLike<unknown> {
  responsePromise?: Promise<unknown>
  parseResponse?: (...args: unknown[]) => Promise<unknown>
  /** Set when the host reads the body. */
  parsedPromise?: unknown
  asResponse?: () => Promise<unknown>
  /** Helpers read the body through this member. */
  _responseProps?: () => Promise<{ response?: unknown; options?: unknown }>
  _thenUnwrap?: (transform: (answer: unknown, ...more: unknown[]) => unknown) => unknown
}

/**
 * The client's promise reads the body only when awaited, once for each kind of await. So its reading functions are
 * observed, not the promise.
 */
function observe(rawResult: unknown, call: ClientCall, method: Method): void {
  const promise = rawResult as ApiPromise
  const { parseResponse, responsePromise, asResponse, _thenUnwrap: thenUnwrap, _responseProps: propsOf } = promise
  let isAnswered = false
  const answered = (answer: unknown) => {
    if (isAnswered) return
    isAnswered = true
    answerArrived(answer, call, method)
  }
  const failed = (error: unknown) => attempt(() => call.fail(error))
  if (typeof parseResponse !== 'function') return void promise.then(answered, failed)
  responsePromise?.catch(failed)
  promise.parseResponse = async (...args) => {
    try {
      const answer = await parseResponse.apply(promise, args)
      attempt(() => answered(answer))
      return answer
    } catch (error) {
      failed(error)
      throw error
    }
  }
  const observed = (response: unknown) => {
    if (isAnswered || !isResponse(response)) return response
    isAnswered = true
    const isStream = String(response.headers.get('content-type')).includes('event-stream')
    const stream = new ModelStream(call, isStream ? method.stream() : new WholeAnswer(method))
    return readSafely(() => stream.response(response, isStream), response)
  }
  if (typeof propsOf === 'function') {
    promise._responseProps = async () => {
      const props = await propsOf.call(promise)
      return fields(props.options)['stream'] === true ? { ...props, response: observed(props.response) } : props
    }
  }
  if (typeof asResponse === 'function') {
    promise.asResponse = async () => {
      // `withResponse` reads the answer too.
      const isRead = promise.parsedPromise !== undefined
      const response = await asResponse.call(promise)
      return isRead ? response : observed(response)
    }
  }
  if (typeof thenUnwrap !== 'function') return
  promise._thenUnwrap = (transform) =>
    thenUnwrap.call(promise, (answer, ...more) => {
      attempt(() => answered(answer))
      return transform(answer, ...more)
    })
}

interface Stream {
  iterator?: () => AsyncIterator<unknown>
  controller?: { signal?: { aborted?: boolean } }
}

function answerArrived(answer: unknown, call: ClientCall, method: Method): void {
  const stream = answer as Stream
  const { iterator } = stream
  if (typeof iterator !== 'function') return call.end(() => method.result(fields(answer)))
  const isAborted = () => stream.controller?.signal?.aborted === true
  const observed = new ModelStream(call, method.stream(), isAborted)
  stream.iterator = () => {
    const items = iterator.call(stream)
    return readSafely<AsyncIterator<unknown>>(() => observed.iterator(items), items)
  }
}

/** Maximum number of characters of an answer that are recorded. */
const ANSWER_CHARS = 8_388_608

/** Collects an answer that is no stream, where the host reads it itself. */
class WholeAnswer implements Collector {
  readonly isComplete = false
  readonly #method: Method
  #text = ''

  constructor(method: Method) {
    this.#method = method
  }

  add({ text: piece }: Fields): boolean {
    if (this.#text.length < ANSWER_CHARS) this.#text += text(piece) ?? ''
    return true
  }

  result(): ModelResult {
    return this.#method.result(fields(JSON.parse(this.#text)))
  }
}
