/**
 * Holds back the tool calls of an answer until they are judged. Text before the first call passes at once.
 *
 *   passing --a call begins--> holding --the answer has ended--> judging --allowed--> sent as it came
 *                                                                  |  |--refused--> sent with a text in place of the call
 *                                                                  |  \--it names a call that was not judged--> broken off
 *                                                                  \--a person is asked--> waiting, with a sign of life
 */
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { fields, type Fields } from '../../../sdk/src/integrations/host.ts'
import { AnswerShare } from './body-copy.ts'
import { parsedOr, STREAM } from './protocols.ts'
import type { NamedCall, Refusing } from './protocols/protocol.ts'
import type { Editor } from './proxy.ts'

export interface Judged {
  /** The reason for each refused call, by `callKey`. */
  readonly refusals: ReadonlyMap<string, string>
  /** An entry without an id covers all calls of its name. */
  readonly allowed: readonly NamedCall[]
}

export type Judge = (signal: AbortSignal) => Promise<Judged>

/** Edits an answer whose request was not seen here: replaces each call by a text. */
export function refuseCalls(refusing: Refusing, why: string): Editor {
  class Everything extends Map<string, string> {
    override readonly size = 1
    override has = (): boolean => true
    override get = (): string => why
  }
  return guardAnswer(refusing, () => Promise.resolve({ refusals: new Everything(), allowed: [] }))
}

/** A longer answer cannot be judged, so it is not sent. */
const HELD_BYTES_MAX = 16_777_216
/** Interval of signs of life: clients and proxies close silent connections. */
const SIGN_MS = 5_000

/** Signs of life that clients ignore: a comment in an event stream, a space before JSON. */
const COMMENT = ': waiting for a decision\n\n'
const SIGN = { stream: Buffer.from(COMMENT), whole: Buffer.from([0x20]) }

export function guardAnswer(refusing: Refusing, judge: Judge): Editor {
  return {
    edit(body, { headers }, signal) {
      const isStream = headers['content-type']?.includes('event-stream') ?? false
      return shared((share) => (isStream ? editStream : editWhole)(refusing, judge, body, signal, share))
    },
  }
}

async function* shared(edit: (share: AnswerShare) => AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const share = new AnswerShare()
  try {
    yield* edit(share)
  } finally {
    share.release()
  }
}

async function* editWhole(
  refusing: Refusing,
  judge: Judge,
  body: AsyncIterable<Buffer>,
  signal: AbortSignal,
  share: AnswerShare,
): AsyncGenerator<Buffer> {
  const held = new Held(share)
  for await (const piece of body) held.add(piece)
  const bytes = held.bytes()
  const whole = bytes.toString()
  // Some servers send a stream without its content type.
  if (STREAM.test(whole)) return yield* editStream(refusing, judge, Readable.from([bytes]), signal, share)
  const answer = parsedOr(whole, undefined)
  if (answer === undefined && whole.trim() !== '') throw new Error('The answer is not JSON, so it cannot be judged.')
  const { refusals, allowed } = yield* waited(judge(signal), SIGN.whole)
  const check = (value: unknown) => {
    for (const each of Array.isArray(value) ? value : [value]) refuseUnjudged(refusing, fields(each), allowed)
  }
  if (refusals.size === 0) {
    check(answer)
    return yield bytes
  }
  const replace = (each: unknown) => refusing.whole(fields(each), refusals)
  // Gemini streams a list of answers if it is asked without `alt=sse`.
  const stream = refusing.stream(refusals)
  const edited = Array.isArray(answer)
    ? answer.flatMap((each: unknown) => stream(fields(each)) ?? [fields(each)])
    : replace(answer)
  check(edited)
  yield Buffer.from(JSON.stringify(edited))
}

/** @throws Error if a client may read a call that nobody judged, for example in a form that no provider sends. */
function refuseUnjudged(refusing: Refusing, event: Fields, allowed: readonly NamedCall[]): void {
  for (const { id, name } of refusing.named(event)) {
    const isAllowed = allowed.some((one) => one.name === name && (id === undefined || one.id === id))
    if (!isAllowed) throw new Error('The answer has a call that was not judged.')
  }
}

async function* editStream(
  refusing: Refusing,
  judge: Judge,
  body: AsyncIterable<Buffer>,
  signal: AbortSignal,
  share: AnswerShare,
): AsyncGenerator<Buffer> {
  const held = new Held(share)
  const events = new Events()
  let isHolding = false
  for await (const piece of body) {
    for (const event of events.add(piece)) {
      isHolding ||= refusing.named(fields(eventIn(event))).length > 0
      if (isHolding) held.add(event)
      else yield event
    }
  }
  // Clients also read a last event without the empty line after it.
  const leftBytes = events.rest()
  isHolding ||= refusing.named(fields(eventIn(leftBytes))).length > 0
  if (!isHolding) return yield leftBytes
  held.add(leftBytes)
  const { refusals, allowed } = yield* waited(judge(signal), SIGN.stream)
  const replace = refusing.stream(refusals)
  const edited = held.pieces.map((event) => {
    const item = eventIn(event)
    const others = item === undefined || refusals.size === 0 ? undefined : replace(fields(item))
    for (const each of others ?? [fields(item)]) refuseUnjudged(refusing, each, allowed)
    return others === undefined ? event : Buffer.from(others.map(textOf).join(''))
  })
  yield Buffer.concat(edited)
}

/** Waits for a result, and yields a sign of life at intervals until then. */
async function* waited<T>(promise: Promise<T>, sign: Buffer): AsyncGenerator<Buffer, T> {
  const done = promise.then((value) => ({ value }))
  done.catch(() => undefined)
  for (;;) {
    const timer = new AbortController()
    const ended = await Promise.race([done, sleep(SIGN_MS, undefined, { signal: timer.signal }).catch(() => undefined)])
    timer.abort()
    if (ended) return ended.value
    yield sign
  }
}

class Held {
  readonly pieces: Buffer[] = []
  readonly #share: AnswerShare | undefined
  #bytes = 0

  constructor(share?: AnswerShare) {
    this.#share = share
  }

  add(piece: Buffer): void {
    this.#bytes += piece.length
    if (this.#bytes > HELD_BYTES_MAX) throw new Error('The answer is too long to be judged.')
    if (this.#share?.take(piece.length) === false) throw new Error('There is no room to judge the answer now.')
    this.pieces.push(piece)
  }

  bytes(): Buffer {
    return Buffer.concat(this.pieces)
  }
}

const LINE_FEED = 10
const RETURN = 13

/** Splits a stream at the empty lines between events. Lines end with CR, LF or CRLF, also mixed. */
class Events {
  #begun = new Held()
  #isLineEmpty = true
  #isAfterReturn = false

  rest(): Buffer {
    const bytes = this.#begun.bytes()
    this.#begun = new Held()
    return bytes
  }

  *add(bytes: Buffer): Generator<Buffer> {
    let from = 0
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]
      const isSecond = byte === LINE_FEED && this.#isAfterReturn
      this.#isAfterReturn = byte === RETURN
      if (isSecond) continue
      const isEnd = byte === LINE_FEED || byte === RETURN
      if (isEnd && this.#isLineEmpty) {
        // The line feed of a CRLF.
        if (byte === RETURN && bytes[at + 1] === LINE_FEED) at++
        this.#isAfterReturn = bytes[at] === RETURN
        this.#begun.add(bytes.subarray(from, at + 1))
        from = at + 1
        yield this.rest()
      }
      this.#isLineEmpty = isEnd
    }
    if (from < bytes.length) this.#begun.add(bytes.subarray(from))
  }
}

/**
 * Undefined: the event has no data, or no data that clients parse as JSON.
 * @throws Error for invalid JSON: some clients accept more than JSON, for example NaN.
 */
function eventIn(event: Buffer): unknown {
  // A byte order mark may precede the first event.
  const lines = event
    .toString()
    .replace(/^\uFEFF/, '')
    .split(/\r\n|\n|\r/)
  const data = lines.flatMap((line) => (line.startsWith('data:') ? [line.slice(5)] : [])).join('\n')
  const item = parsedOr(data, undefined)
  if (item === undefined && /^\s*(?:\{|\[(?!DONE\]))/.test(data))
    throw new Error('An event is not JSON, so it cannot be judged.')
  return item
}

function textOf(event: Readonly<Record<string, unknown>>): string {
  const { type } = event
  return `${typeof type === 'string' ? `event: ${type}\n` : ''}data: ${JSON.stringify(event)}\n\n`
}
