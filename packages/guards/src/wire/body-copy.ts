/** Bounded copies of request and response bodies. The bodies themselves pass unchanged and unbounded. */
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import * as zlib from 'node:zlib'
import { pipeline, Readable, type Transform } from 'node:stream'

/** At most this much of a request is read for the recording. */
export const COPY_BYTES_MAX = 32 * 1_048_576
/** Compressed bytes that wait for their decoder. */
const WAITING_BYTES_MAX = 4 * 1_048_576

/** Shared by all requests under way. While it is used up, requests pass without being recorded. */
const ALL_COPIES_BYTES_MAX = 512 * 1_048_576
let allCopiesBytes = 0

/**
 * Shared by all answers under way, of all keys. While it is used up, answers pass and are recorded as cut; a guard
 * refuses them.
 */
const ALL_ANSWERS_BYTES_MAX = 512 * 1_048_576
let allAnswersBytes = 0

export const areAnswersFull = (): boolean => allAnswersBytes >= ALL_ANSWERS_BYTES_MAX

/** The share of memory that one answer uses. */
export class AnswerShare {
  #bytes = 0
  #isReleased = false

  /** @returns false if there is no room. */
  take(bytes: number): boolean {
    // Late pieces of an answer that is already recorded.
    if (this.#isReleased) return true
    if (allAnswersBytes + bytes > ALL_ANSWERS_BYTES_MAX) return false
    this.#bytes += bytes
    allAnswersBytes += bytes
    return true
  }

  release(): void {
    allAnswersBytes -= this.#bytes
    this.#bytes = 0
    this.#isReleased = true
  }
}

export class BodyCopy {
  #pieces: Buffer[] = []
  #bytes = 0
  #counted = 0
  #isWhole = true
  #isReleased = false

  get isWhole(): boolean {
    return this.#isWhole
  }

  add(piece: Buffer): void {
    this.#bytes += piece.length
    // A client may still send after the exchange has ended.
    if (this.#isReleased) this.#isWhole = false
    if (this.#bytes > COPY_BYTES_MAX || allCopiesBytes + piece.length > ALL_COPIES_BYTES_MAX) this.#isWhole = false
    if (!this.#isWhole) {
      this.#pieces = []
      return this.release()
    }
    this.#pieces.push(piece)
    this.#counted += piece.length
    allCopiesBytes += piece.length
  }

  /** Call when the exchange has ended. */
  release(): void {
    allCopiesBytes -= this.#counted
    this.#counted = 0
    this.#isReleased = true
  }

  /** Undefined: the body is larger than the copy may be. */
  whole(): Buffer | undefined {
    if (!this.isWhole) return undefined
    const whole = Buffer.concat(this.#pieces)
    this.#pieces = [whole]
    return whole
  }

  /** The pieces received so far. */
  pieces(): Buffer[] {
    return [...this.#pieces]
  }
}

/** Undefined on Node 20, which has no zstd. */
const { createZstdDecompress } = zlib as { createZstdDecompress?: () => Transform }

const DECODERS = new Map<string, (() => Transform) | undefined>([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
  ['zstd', createZstdDecompress],
])

export function decoderOf(encoding: string | undefined): Transform | 'none' | undefined {
  const name = encoding?.trim().toLowerCase() ?? ''
  return name === '' || name === 'identity' ? 'none' : DECODERS.get(name)?.()
}

/** @throws Error for an unknown encoding. */
export function decoded(pieces: AsyncIterable<Buffer>, encoding: string | undefined): AsyncIterable<Buffer> {
  const decoder = decoderOf(encoding)
  if (decoder === undefined) throw Object.assign(new Error('The encoding is unknown.'), { code: 'UNKNOWN_ENCODING' })
  if (decoder === 'none') return pieces
  return pipeline(Readable.from(pieces), decoder, () => undefined)
}

/** Decodes pieces and passes them to `read` as they come. Drops the rest if decoding is too slow. */
export class Decoding {
  readonly #decoder: Transform | 'none' | undefined
  readonly #read: (bytes: Buffer) => void
  readonly #done: Promise<void>
  #isLost: boolean

  constructor(encoding: string | undefined, read: (bytes: Buffer) => void) {
    const decoder = decoderOf(encoding)
    this.#decoder = decoder
    this.#read = (bytes) => {
      try {
        read(bytes)
      } catch {
        this.#isLost = true
      }
    }
    this.#isLost = decoder === undefined
    this.#done = new Promise((resolve) => {
      if (decoder === 'none' || decoder === undefined) return resolve()
      decoder.on('data', this.#read)
      decoder.once('error', () => {
        this.#isLost = true
        resolve()
      })
      decoder.once('end', resolve)
      decoder.once('close', resolve)
    })
  }

  add(bytes: Buffer): void {
    if (this.#isLost) return
    if (this.#decoder === 'none') return this.#read(bytes)
    if (!this.#decoder) return
    if (this.#decoder.writableLength > WAITING_BYTES_MAX) {
      this.#isLost = true
      this.#decoder.destroy()
    } else this.#decoder.write(bytes)
  }

  /** Resolves when everything was read; false if a part is missing. */
  async end(): Promise<boolean> {
    if (this.#decoder && this.#decoder !== 'none' && !this.#isLost) this.#decoder.end()
    await this.#done
    return !this.#isLost
  }
}
