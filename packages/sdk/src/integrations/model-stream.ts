/**
 * The one wrapper around the stream of a model. It notes how the stream ended, collects what arrived, and
 * never changes what the host reads.
 *
 *   open --read to its end-----------------------> ended
 *     |--its reader leaves it or aborts it-------> aborted, unless the answer was whole
 *     |--the provider breaks it, an error in it--> failed
 *     \--nobody reads on, or its run or process ends--> aborted (model-call.ts)
 */
import { attempt } from '../core.ts'
import { withBody, type WebResponse } from '../recording/streamed-result.ts'
import { fields, type Fields } from './host.ts'
import type { ModelResult } from './model-call.ts'
import type { ClientCall } from './noted-call.ts'

/** Collects the items of a stream. */
export interface Collector {
  /** Returns whether the item contains a part of the answer. */
  add(item: Fields): boolean
  result(): ModelResult
  /** Whether the model has ended its answer. */
  readonly isComplete: boolean
  /** The id of a call that begins with the item, if a helper may run it before the answer has ended. */
  callId?(item: Fields): unknown
  /** The error, if the item is one. */
  errorIn?(item: Fields): unknown
}

/** Declared here, so that hosts without the types of web streams can compile it. */
export interface ReadableStream {
  getReader(): { read(): Promise<{ done: boolean; value?: unknown }>; cancel(reason?: unknown): Promise<void> }
}

interface StreamController {
  enqueue(value: unknown): void
  close(): void
  error(error: unknown): void
}

export class ModelStream {
  readonly #call: ClientCall
  readonly #collector: Collector
  readonly #isAborted: () => boolean
  readonly #result = () => this.#collector.result()

  /** @param isAborted some clients end a stream without an error when their signal aborts. */
  constructor(call: ClientCall, collector: Collector, isAborted = () => false) {
    this.#call = call
    this.#collector = collector
    this.#isAborted = isAborted
    call.reads(this.#result)
  }

  /** An iterator that replaces the source. Leaving the loop early ends it too. */
  iterator(source: AsyncIterator<unknown>): AsyncIterableIterator<unknown> {
    const observer = this.#observer()
    return {
      async next(...nextArguments) {
        attempt(() => observer.waits())
        try {
          const result = await source.next(...nextArguments)
          attempt(() => (result.done ? observer.end() : observer.item(result.value)))
          return result
        } catch (error) {
          attempt(() => observer.fail(error))
          throw error
        }
      },
      async return(value?: unknown) {
        attempt(() => observer.leave())
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

  /** The same for a web stream. The source is not read faster than the host reads. */
  web(source: ReadableStream, onItem?: (value: unknown) => void): unknown {
    const observer = this.#observer(onItem)
    let reader: ReturnType<ReadableStream['getReader']> | undefined
    const { ReadableStream: Stream } = globalThis as unknown as {
      ReadableStream: new (source: object, strategy: object) => unknown
    }
    const underlying = {
      async pull(controller: StreamController) {
        attempt(() => observer.waits())
        try {
          const { done, value } = await (reader ??= source.getReader()).read()
          attempt(() => (done ? observer.end() : observer.item(value)))
          if (done) controller.close()
          else controller.enqueue(value)
        } catch (error) {
          attempt(() => observer.fail(error))
          controller.error(error)
        }
      },
      cancel(reason: unknown) {
        attempt(() => observer.leave())
        return (reader ?? source.getReader()).cancel(reason)
      },
    }
    // With 0, nothing is read before the host reads.
    return new Stream(underlying, { highWaterMark: 0 })
  }

  /** The same for a response: the events of its body, or its text. */
  response(webResponse: WebResponse, isStream: boolean): unknown {
    const decoder = new TextDecoder()
    let line = ''
    const onBytes = (bytes: unknown): void => {
      const text = decoder.decode(bytes as Uint8Array, { stream: true })
      if (!isStream) return this.#item({ text })
      const lines = `${line}${text}`.split(/\r?\n/)
      line = lines.pop() ?? ''
      // An event of the two clients is one line of its data.
      for (const data of lines) if (data.startsWith('data:')) attempt(() => this.#item(JSON.parse(data.slice(5))))
    }
    return withBody(webResponse, this.web(webResponse.body, onBytes))
  }

  #observer(onItem = (value: unknown): void => this.#item(value)) {
    const call = this.#call
    const result = this.#result
    // Many hosts stop after the last piece, without reading to the end.
    const leave = () => (this.#collector.isComplete ? call.end(result) : call.abort(result))
    return {
      waits: () => (call.isWaiting = true),
      item: onItem,
      end: () => (this.#isAborted() ? leave() : call.end(result)),
      leave,
      fail: (error: unknown) => call.fail(error, result),
    }
  }

  #item(value: unknown): void {
    const item = fields(value)
    this.#call.touch()
    if (this.#collector.add(item)) this.#call.token()
    const callId = this.#collector.callId?.(item)
    if (callId !== undefined) this.#call.streams(callId)
    const error = this.#collector.errorIn?.(item)
    if (error !== undefined) this.#call.fail(error, this.#result)
  }
}
