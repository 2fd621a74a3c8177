/** A run ends when the body of its result does. Loaded only for streams, Responses and async iterables. */
import { observeSteps, once, type End, type Within } from '../delivery/ending.ts'
import { readSafely } from './json.ts'
import type { Runtime } from '../delivery/runtime.ts'

/** After this time, an unread body is no longer observed. */
const UNREAD_MS = 10_000

/** Parts of the web's streams and of Node's, without their types: hosts without them compile this too. */
interface Reader {
  read(): Promise<{ done: boolean; value?: unknown }>
  cancel(reason?: unknown): Promise<void>
}
interface WebStream {
  readonly locked: boolean
  getReader(): Reader
  cancel(reason?: unknown): Promise<void>
}
interface Controller {
  enqueue(value: unknown): void
  close(): void
}
export interface WebResponse {
  readonly body: WebStream
  readonly headers: { get(name: string): string | null }
  readonly url: string
  readonly constructor: Make
}
/** A stream of Node, or one of OpenAI's or Anthropic's client. */
interface EventStream {
  readonly destroyed?: boolean
  readonly readableEnded?: boolean
  readonly ended?: boolean
  /** The error, or only whether there is one. */
  readonly errored?: unknown
  readonly aborted?: boolean
  on(event: 'end' | 'close', listener: () => void): unknown
  /** Reads on in a Node stream, such as the steps of a generator. */
  _read?: (size: number) => void
}
type Make = new (...callArguments: unknown[]) => unknown
type Globals = Record<'ReadableStream' | 'Response', Make>
type Iterate = (...callArguments: unknown[]) => Record<string, unknown>
type Iterable = Record<symbol, Iterate>

/**
 * Returns the result itself, or the same with an observed body. Calls `end` once, at once if nothing can be observed.
 */
export async function observeResult(rawResult: unknown, act: Within, onEnd: End, { timer }: Runtime): Promise<unknown> {
  const { finish: end } = once(onEnd)
  // Servers answer HEAD without reading the body.
  const unread = timer(UNREAD_MS, () => void end(undefined, true))
  const within: Within = (step) => {
    unread.cancel()
    return act(step)
  }
  const observed = readSafely(() => {
    if (isWebStream(rawResult)) return observedStream(rawResult, within, end)
    if (isResponse(rawResult)) return observedResponse(rawResult, within, end)
    if (isEventStream(rawResult)) {
      // An event stream does not report when it is read.
      unread.cancel()
      return observeEvents(rawResult, act, end)
    }
    return observeIterable(rawResult, within, end)
  }, undefined)
  if (observed !== undefined) return observed
  unread.cancel()
  await end()
  return rawResult
}

function isWebStream(rawResult: unknown): rawResult is WebStream {
  return typeof (rawResult as Partial<WebStream> | null)?.getReader === 'function'
}

export function isResponse(rawResult: unknown): rawResult is WebResponse {
  const { body, status, headers } = rawResult as { body?: unknown; status?: unknown; headers?: { get?: unknown } }
  return typeof status === 'number' && typeof headers?.get === 'function' && isWebStream(body)
}

function isEventStream(rawResult: unknown): rawResult is EventStream {
  return typeof (rawResult as { on?: unknown }).on === 'function'
}

/** A stream that reads no faster than the host. Undefined if another reader has locked the original. */
function observedStream(stream: WebStream, within: Within, end: End): unknown {
  if (stream.locked) return undefined
  let reader: Reader | undefined
  const source = {
    async pull(controller: Controller) {
      try {
        const { done, value } = await within(() => (reader ??= stream.getReader()).read())
        if (!done) return controller.enqueue(value)
      } catch (error) {
        await end({ error })
        throw error
      }
      await end()
      controller.close()
    },
    async cancel(reason: unknown) {
      // End first: a pending read returns as if the stream had ended.
      const ended = end(reason === undefined ? undefined : { error: reason }, true)
      await within(() => (reader ?? stream).cancel(reason))
      await ended
    },
  }
  // Nothing is read before the host reads.
  return new (globalThis as unknown as Globals).ReadableStream(source, { highWaterMark: 0 })
}

function observedResponse(response: WebResponse, within: Within, end: End): unknown {
  const body = observedStream(response.body, within, end)
  return body === undefined ? undefined : withBody(response, body)
}

/** Keeps the class of the response if its constructor takes what that of Response takes. */
export function withBody(response: WebResponse, body: unknown): unknown {
  const { Response } = globalThis as unknown as Globals
  const same = readSafely(() => new response.constructor(body, response) as Partial<WebResponse>, undefined)
  const made = same?.body ? same : new Response(body, response)
  Object.defineProperty(made, 'url', { value: response.url, configurable: true })
  return made
}

/** Do not listen to `error`: a listener would change the effect of an error on the process. */
function observeEvents(stream: EventStream, within: Within, end: End): unknown {
  if (stream.destroyed || stream.readableEnded || stream.ended) return undefined
  const work = stream._read?.bind(stream)
  if (work) stream._read = (size) => within(() => work(size))
  const finish = (isClosed: boolean) => {
    const { errored, aborted } = stream
    if (aborted || (isClosed && !errored)) return void end(undefined, true)
    const error = errored === true ? new Error('The stream broke.') : errored
    return void end(error ? { error } : undefined)
  }
  stream.on('end', () => finish(false))
  stream.on('close', () => finish(true))
  return stream
}

/** Throws if it cannot be changed. */
function observeIterable(rawIterable: unknown, within: Within, end: End): unknown {
  const observe = (steps: Record<string, unknown>) => {
    // Without a `return` step, nothing would report that the host left the loop.
    steps['return'] ??= async (value: unknown) => ({ done: true, value })
    observeSteps(steps, within, end)
    return steps
  }
  const work = rawIterable as Iterable
  const iterate = work[Symbol.asyncIterator]
  if (!iterate) return undefined
  // The iterable may be its own iterator, which a host may use without a loop.
  if (typeof (rawIterable as Partial<AsyncIterator<unknown>>).next === 'function')
    observe(rawIterable as Record<string, unknown>)
  else work[Symbol.asyncIterator] = (...how) => observe(within(() => Reflect.apply(iterate, rawIterable, how)))
  return rawIterable
}
