/**
 * Holds back what an answer asks for until it is judged. Texts before the first call pass as they come.
 *
 *   passing --a call begins--> holding --the answer has ended--> judging --allowed--> sent as it came
 *                                                                  |  \--refused--> sent with a text in place of the call
 *                                                                  \--a person is asked--> waiting, with a sign of life
 */
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { fields } from '../../../sdk/src/integrations/host.ts'
import { parsedOr, STREAM } from './protocols.ts'
import type { Refusing } from './protocols/protocol.ts'
import type { Editor } from './proxy.ts'

/** Why each refused call must not run, by `callKey`. */
export type Judge = (signal: AbortSignal) => Promise<ReadonlyMap<string, string>>

/** An answer that is longer cannot be judged, so it is not sent. */
const HELD_BYTES_MAX = 16_777_216
/** Clients and the proxies before them close silent connections. */
const SIGN_MS = 5_000

/** A comment of the stream. Before JSON, a space means nothing. */
const COMMENT = ': waiting for a decision\n\n'
const SIGN = { stream: Buffer.from(COMMENT), whole: Buffer.from([0x20]) }

export function guardAnswer(refusing: Refusing, judge: Judge): Editor {
  return {
    edit(body, { headers }, signal) {
      const isStream = headers['content-type']?.includes('event-stream') ?? false
      return isStream ? editStream(refusing, judge, body, signal) : editWhole(refusing, judge, body, signal)
    },
  }
}

async function* editWhole(
  refusing: Refusing,
  judge: Judge,
  body: AsyncIterable<Buffer>,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const held = new Held()
  for await (const piece of body) held.add(piece)
  const bytes = held.bytes()
  const whole = bytes.toString()
  // Some servers do not say that they stream.
  if (STREAM.test(whole)) return yield* editStream(refusing, judge, Readable.from([bytes]), signal)
  const answer = parsedOr(whole, undefined)
  if (answer === undefined && whole.trim() !== '') throw new Error('The answer is not JSON, so it cannot be judged.')
  const refusals = yield* waited(judge(signal), SIGN.whole)
  if (refusals.size === 0) return yield bytes
  const replace = (each: unknown) => refusing.whole(fields(each), refusals)
  // Gemini streams a list of answers if it is asked without `alt=sse`.
  const stream = refusing.stream(refusals)
  yield Buffer.from(
    JSON.stringify(Array.isArray(answer) ? answer.flatMap((each) => stream(fields(each)) ?? [each]) : replace(answer)),
  )
}

async function* editStream(
  refusing: Refusing,
  judge: Judge,
  body: AsyncIterable<Buffer>,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const held = new Held()
  let isHolding = false
  let begun = Buffer.alloc(0)
  for await (const piece of body) {
    if (isHolding) {
      held.add(piece)
      continue
    }
    begun = Buffer.concat([begun, piece])
    for (let end = endOfEvent(begun); end > 0 && !isHolding; end = endOfEvent(begun)) {
      const event = begun.subarray(0, end)
      isHolding = refusing.holds(fields(eventIn(event.toString())))
      if (isHolding) break
      yield event
      begun = begun.subarray(end)
    }
    if (!isHolding && begun.length > HELD_BYTES_MAX) throw new Error('An event is too long to be judged.')
    if (isHolding) held.add(begun)
  }
  // Clients read an event also if the empty line after it is missing.
  if (!isHolding && !refusing.holds(fields(eventIn(begun.toString())))) return yield begun
  if (!isHolding) held.add(begun)
  const refusals = yield* waited(judge(signal), SIGN.stream)
  const bytes = held.bytes()
  if (refusals.size === 0) return yield bytes
  const replace = refusing.stream(refusals)
  for (let leftBytes = bytes; leftBytes.length > 0;) {
    const end = endOfEvent(leftBytes) || leftBytes.length
    const event = leftBytes.subarray(0, end)
    leftBytes = leftBytes.subarray(end)
    const item = eventIn(event.toString())
    const others = item === undefined ? undefined : replace(fields(item))
    if (others === undefined) yield event
    else for (const other of others) yield Buffer.from(textOf(other))
  }
}

/** Yields a sign of life until it is known. */
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
  readonly #pieces: Buffer[] = []
  #bytes = 0

  add(piece: Buffer): void {
    this.#bytes += piece.length
    if (this.#bytes > HELD_BYTES_MAX) throw new Error('The answer is too long to be judged.')
    this.#pieces.push(piece)
  }

  bytes(): Buffer {
    return Buffer.concat(this.#pieces)
  }
}

const ENDS = ['\n\n', '\r\n\r\n', '\r\r']

/** After the empty line that ends the first event; 0 if there is none yet. */
function endOfEvent(bytes: Buffer): number {
  const ends = ENDS.flatMap((end) => {
    const at = bytes.indexOf(end)
    return at === -1 ? [] : [at + end.length]
  })
  return ends.length === 0 ? 0 : Math.min(...ends)
}

/** Undefined: it has no data, or none that is JSON. */
function eventIn(event: string): unknown {
  const lines = event.split(/\r\n|\n|\r/).filter((line) => line.startsWith('data:'))
  return lines.length === 0 ? undefined : parsedOr(lines.map((line) => line.slice(5)).join('\n'), undefined)
}

function textOf(event: Readonly<Record<string, unknown>>): string {
  const { type } = event
  return `${typeof type === 'string' ? `event: ${type}\n` : ''}data: ${JSON.stringify(event)}\n\n`
}
