/** The OpenAI and Anthropic clients have the same core. */
import { canRecord, isMarked, mark } from '../border.ts'
import { attempt } from '../core.ts'
import type { Tacho } from '../tacho.ts'
import { readSafely } from '../json.ts'
import {
  fields,
  observedIterator,
  observedStream,
  type Fields,
  type ReadableStream,
  type StreamObserver,
} from './host.ts'
import { hostCall } from './host-call.ts'
import { ModelCall, type ModelRequest, type ModelResult } from './model-call.ts'

export interface Method {
  /** For example `['chat', 'completions', 'create']`. */
  path: readonly string[]
  request(body: Fields): ModelRequest
  result(answer: Fields): ModelResult
  /** Collects the items of a stream. */
  stream(): Collector
}

export interface Collector {
  /** True if the item holds a piece of the answer. */
  add(item: Fields): boolean
  result(): ModelResult
  /** The model ended its answer. */
  readonly isComplete: boolean
  /** Of a call that begins with the item, if a helper may run it before the answer has ended. */
  callId?(item: Fields): unknown
}

/** Helpers of the client (`stream`, `parse`, runners) call these methods, so they are recorded too. */
export function recordMethods<Client extends object>(client: Client, tacho: Tacho, methods: readonly Method[]): Client {
  if (!canRecord(tacho, 'Model calls')) return client
  for (const method of methods) attempt(() => replace(client, tacho, method))
  return client
}

type Create = (this: unknown, body: unknown, ...more: unknown[]) => unknown

/** On a method that is recorded already. */
const RECORDED = Symbol.for('tacho.recorded')

function replace(client: object, tacho: Tacho, method: Method): void {
  const { path } = method
  const owner = path.slice(0, -1).reduce<unknown>((at, name) => fields(at)[name], client) as Record<string, unknown>
  const name = path.at(-1) ?? ''
  const create = fields(owner)[name]
  if (typeof create !== 'function' || isMarked(create, RECORDED)) return
  const recorded: Create = function recorded(...given) {
    return hostCall(tacho, {
      begin: () => new ModelCall(tacho, () => method.request(fields(given[0]))),
      call: () => (create as Create).apply(this, given),
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
  /** A helper reads the body itself. */
  _responseProps?: () => Promise<{ response?: unknown; options?: unknown }>
  _thenUnwrap?: (transform: (answer: unknown, ...more: unknown[]) => unknown) => unknown
}

/**
 * The client's promise reads the body only when it is awaited, once for each way to await it. So its reading functions
 * are observed.
 */
function observe(given: unknown, call: ModelCall, method: Method): void {
  const promise = given as ApiPromise
  const { parseResponse, responsePromise, _thenUnwrap: thenUnwrap, _responseProps: propsOf } = promise
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
  if (typeof propsOf === 'function') {
    promise._responseProps = async () => {
      const props = await propsOf.call(promise)
      if (isAnswered || fields(props.options)['stream'] !== true) return props
      isAnswered = true
      return readSafely(() => ({ ...props, response: observedResponse(props.response, call, method) }), props)
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

function answerArrived(answer: unknown, call: ModelCall, method: Method): void {
  const stream = answer as Stream
  const { iterator } = stream
  if (typeof iterator !== 'function') return call.end(() => method.result(fields(answer)))
  const observer = observerOf(call, method)
  stream.iterator = () => {
    const items = iterator.call(stream)
    return readSafely<AsyncIterator<unknown>>(() => observedIterator(items, observer), items)
  }
}

function observerOf(call: ModelCall, method: Method): StreamObserver {
  const collector = method.stream()
  const result = () => collector.result()
  call.reads(result)
  return {
    item(value) {
      const item = fields(value)
      if (collector.add(item)) call.token()
      const callId = collector.callId?.(item)
      if (callId !== undefined) call.streams(callId)
    },
    end: () => (collector.isComplete ? call.end(result) : call.abort(result)),
    fail: (error) => call.fail(error, result),
  }
}

/** The same response. The events of its body are observed when they are read. */
function observedResponse(given: unknown, call: ModelCall, method: Method): unknown {
  const response = given as object & { body: ReadableStream }
  const observer = observerOf(call, method)
  const events = new ServerSentEvents(observer)
  const body = observedStream(response.body, {
    item: (bytes) => events.add(bytes),
    end: () => observer.end(),
    fail: (error) => observer.fail(error),
  })
  return new Proxy(response, {
    get(target, name) {
      if (name === 'body') return body
      // Its getters refuse another object.
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

/** An item of a stream of the two clients is one line of its data. */
class ServerSentEvents {
  readonly #observer: StreamObserver
  readonly #decoder = new TextDecoder()
  #line = ''

  constructor(observer: StreamObserver) {
    this.#observer = observer
  }

  add(bytes: unknown): void {
    const lines = `${this.#line}${this.#decoder.decode(bytes as Uint8Array, { stream: true })}`.split(/\r?\n/)
    this.#line = lines.pop() ?? ''
    for (const line of lines) {
      if (line.startsWith('data:')) attempt(() => this.#observer.item(JSON.parse(line.slice(5))))
    }
  }
}
