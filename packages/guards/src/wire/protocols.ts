/** Reads requests and answers, by the protocol that the path of the request names. */
import { fields, text } from '../../../sdk/src/integrations/host.ts'
import type { ModelResult } from '../../../sdk/src/integrations/model-call.ts'
import type { Collector } from '../../../sdk/src/integrations/model-stream.ts'
import { EMBEDDINGS } from '../../../sdk/src/integrations/openai-methods.ts'
import { ANTHROPIC_MESSAGES } from './protocols/anthropic-messages.ts'
import { GEMINI } from './protocols/gemini.ts'
import { OLLAMA } from './protocols/ollama.ts'
import { OPENAI_CHAT } from './protocols/openai-chat.ts'
import { OPENAI_RESPONSES } from './protocols/openai-responses.ts'
import type { Protocol } from './protocols/protocol.ts'
import { AnswerShare } from './body-copy.ts'

const PROTOCOLS: readonly (readonly [RegExp, Protocol])[] = [
  [/\/chat\/completions$/, OPENAI_CHAT],
  [/\/responses$/, OPENAI_RESPONSES],
  [/\/messages$/, ANTHROPIC_MESSAGES],
  [/:(?:stream)?generatecontent$/, GEMINI],
  [/\/api\/chat$/, OLLAMA],
  [/\/embeddings$/, { ...EMBEDDINGS, name: 'openai-embeddings' }],
]

/** Undefined if the request is not a call of a model, for example if it lists models. */
export function protocolOf(method: string, path: string): Protocol | undefined {
  return method === 'POST' ? protocolAt(canonical(path)) : undefined
}

const protocolAt = (read: string): Protocol | undefined => PROTOCOLS.find(([pattern]) => pattern.test(read))?.[1]

/** Reads like the most lenient server: a stricter guard would let calls pass under another spelling. */
function canonical(path: string): string {
  let [read = ''] = path.split('?')
  // Decode repeatedly: some servers decode a path that a proxy before them has already decoded.
  for (let times = 0; times < DECODED_TIMES && read.includes('%'); times++)
    read = read.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
  const keptWords: string[] = []
  for (const each of read
    .replace(/[?#].*/s, '')
    .replaceAll('\\', '/')
    .split('/')) {
    // eslint-disable-next-line no-control-regex
    const word = each.replace(/;.*/s, '').replace(/[\x00-\x20\x7f\xa0]/g, '')
    if (word === '..') keptWords.pop()
    else if (word !== '' && word !== '.') keptWords.push(word)
  }
  return `/${keptWords.join('/').toLowerCase()}`
}

const DECODED_TIMES = 3

/**
 * How a guard treats requests that are not plain calls of a model. `later`: the answer of an earlier call. `refused`:
 * nobody can judge it.
 */
export function guardedWay(method: string, path: string): 'later' | 'refused' | undefined {
  if (method === 'HEAD' || method === 'OPTIONS') return undefined
  const read = canonical(path)
  // Reads a response that was created in background mode.
  if (method === 'GET' && /\/responses\/[^/]+$/.test(read)) return 'later'
  if (method === 'POST' && /\/responses\/[^/]+\/cancel$/.test(read)) return 'later'
  // Stored completions, and results of batches.
  const isStored = /\/chat\/completions\/.|\/messages\/batches\/[^/]+\/results$/.test(read)
  if (isStored) return method === 'DELETE' ? undefined : 'refused'
  const protocol = protocolAt(read)
  const isCall = protocol?.refusing !== undefined && !/\/threads\/[^/]+\/messages$/.test(read)
  // Refuse other methods: some servers accept them in place of POST.
  return isCall && method !== 'POST' ? 'refused' : undefined
}

/** The error in an unsuccessful answer. */
export function errorIn(answer: unknown, status: number): Record<string, unknown> {
  // Gemini wraps the error in a list.
  const { error, message } = fields(Array.isArray(answer) ? (answer as unknown[])[0] : answer)
  const { type, code, status: name } = fields(error)
  const bodyText =
    text(fields(error)['message']) ?? text(error) ?? text(message) ?? `The model answered with status ${status}.`
  return {
    message: bodyText,
    status,
    ...(text(type ?? name) && { type: type ?? name }),
    ...((text(code) ?? null) !== null && { code }),
  }
}

/** Reads an answer while it arrives. */
export class AnswerReader {
  readonly #protocol: Protocol
  readonly #decoder = new TextDecoder()
  readonly #onEvent: (isPiece: boolean) => void
  /** Each line is an event. */
  readonly #isLines: boolean
  #collector: Collector | undefined
  /** In a stream: the current line so far, without a CR at its end. */
  #text = ''
  #isAfterReturn = false
  #isStreamKnown = false
  #raw = ''
  /** The current event so far. */
  #data: string[] = []
  #chars = 0
  #answerId: string | undefined
  #isOver = false
  readonly #share = new AnswerShare()
  #hasNoRoom = false
  /** An error in the stream, in place of an answer. */
  error: unknown

  constructor(protocol: Protocol, contentType: string | undefined, onEvent: (isPiece: boolean) => void) {
    this.#protocol = protocol
    this.#onEvent = onEvent
    this.#isLines = contentType?.includes('ndjson') ?? false
    if (this.#isLines || contentType?.includes('event-stream')) this.#collector = protocol.stream()
  }

  /** Whether the answer is complete. Chat completions send their tokens after the last piece, so they end only with [DONE]. */
  get isOver(): boolean {
    return this.#isOver || (this.isComplete && this.#protocol.name !== 'openai-chat')
  }

  get isComplete(): boolean {
    return this.#collector?.isComplete ?? false
  }

  /** The id by which a later request may name the answer. */
  get answerId(): string | undefined {
    return this.#answerId ?? text(fields(this.whole())['id'])
  }

  /** Releases the answer's share of memory. Call it after the last read. */
  release(): void {
    this.#share.release()
  }

  /** The text of the answer as received. `isWhole`: nothing of it is missing. */
  get raw(): { body: string; isWhole: boolean; isStream: boolean } {
    return {
      body: this.#raw,
      isWhole: !this.isCut && this.#raw.length === this.#chars,
      isStream: this.#collector !== undefined,
    }
  }

  /** Whether a part of the answer was not read. */
  get isCut(): boolean {
    return this.#hasNoRoom || this.#chars > ANSWER_CHARS_MAX
  }

  /** Stops reading the answer, because there is no memory for more. */
  cut(): void {
    this.#hasNoRoom = true
    this.#raw = ''
  }

  add(bytes: Buffer): void {
    if (this.isCut) return
    if (!this.#share.take(bytes.length)) return this.cut()
    const piece = this.#decoder.decode(bytes, { stream: true })
    if (this.#raw.length === this.#chars && this.#chars + piece.length <= RAW_CHARS_MAX) this.#raw += piece
    this.#chars += piece.length
    if (this.isCut) return
    if (this.#collector) return this.#lines(piece)
    this.#text += piece
    if (this.#isStreamKnown) return
    // Some servers do not announce a stream, so look for one until the text has seven characters that are not blank. Later
    // pieces are not searched: searching a long text again with each piece would be slow.
    const text = this.#text
    this.#isStreamKnown = /\S.{6}/s.test(text) || text.length > BLANK_CHARS_MAX
    if (!STREAM.test(text)) return
    this.#collector = this.#protocol.stream()
    this.#text = ''
    this.#lines(text)
  }

  /** Each piece is read once, however long its line is. */
  #lines(piece: string): void {
    const [first = '', ...more] = `${this.#isAfterReturn ? '\r' : ''}${piece}`.split(LINE_END)
    const last = more.at(-1) ?? first
    this.#isAfterReturn = last.endsWith('\r')
    const begun = this.#isAfterReturn ? last.slice(0, -1) : last
    if (more.length === 0) {
      this.#text += begun
      return
    }
    this.#line(this.#text + first)
    for (const line of more.slice(0, -1)) this.#line(line)
    this.#text = begun
  }

  /** Reads the last event, as clients do, even without the empty line after it. */
  end(): void {
    if (!this.#collector) return
    this.#line(this.#text)
    this.#line('')
    this.#text = ''
  }

  #line(line: string): void {
    if (this.#isLines) this.#data.push(line)
    else if (line.startsWith('data:')) this.#data.push(line.slice(5))
    if (this.#data.length === 0 || (line !== '' && !this.#isLines)) return
    const data = this.#data.join('\n')
    this.#data = []
    this.#isOver ||= data.trim() === '[DONE]'
    const event = parsedOr(data, undefined)
    if (event === undefined) return
    const item = fields(event)
    this.error ??= this.#collector?.errorIn?.(item) ?? (item['error'] || undefined)
    this.#answerId ??= text(fields(item['response'])['id'])
    this.#onEvent(this.#collector?.add(item) ?? false)
  }

  /** The result. @param isRead false: a part could not be decoded. */
  readResult(isRead: boolean): ModelResult {
    try {
      if (this.#hasNoRoom) return { ...(this.#collector && this.result()), output: '[too large]' }
      return isRead || this.isComplete ? this.result() : { ...this.result(), output: '[unreadable]' }
    } catch {
      return { output: '[unreadable]' }
    }
  }

  /** The result so far. */
  result(): ModelResult {
    if (this.#collector) return this.#collector.result()
    const answer = this.whole()
    if (!Array.isArray(answer)) return this.#protocol.result(fields(answer))
    const collector = this.#protocol.stream()
    for (const item of answer) collector.add(fields(item))
    return collector.result()
  }

  /** Undefined if it is not JSON. */
  whole(): unknown {
    return parsedOr(this.#text, undefined)
  }
}

/** Matches the beginning of an event stream. */
export const STREAM = /^\s*(?:data|event|id|retry)?:/
/** A line end; a CR at the end of the text may be half of one. */
const LINE_END = /\r\n|\n|\r(?!$)/
const BLANK_CHARS_MAX = 65_536
/** A longer answer is recorded without its received text. */
const RAW_CHARS_MAX = 65_536
/** At most this much of an answer is read for the recording. */
const ANSWER_CHARS_MAX = 16_777_216

export function parsedOr(json: string, otherwise: unknown): unknown {
  try {
    return JSON.parse(json) as unknown
  } catch {
    return otherwise
  }
}
