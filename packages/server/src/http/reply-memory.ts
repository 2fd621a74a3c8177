/** Limits memory for replies that are being built or are unread. */
import type { FastifyReply } from 'fastify'
import { refuse, type Refusal } from './reply-error.ts'

export interface ReplyMemoryOptions {
  maxBytes: number
  /** A client that reads nothing of its reply for this long is disconnected. */
  stalledMs: number
}

/** A page being built. */
export interface Page {
  /** The page is built; its bytes count until the client has read them. */
  built(reply: FastifyReply, bytes: number): void
  /** There is nothing to send. */
  dropped(): void
}

/** Pages to build concurrently: each blocks the event loop for some milliseconds. */
const BUILDERS = 4
/** Requests waiting to build a page. */
const MAX_WAITING = 1_000
/** Smaller replies are not counted; the number of connections bounds them. */
const UNCOUNTED_BYTES = 16_384

export class ReplyMemory {
  readonly maxBytes: number
  bytes = 0
  readonly #stalledMs: number
  readonly #waiting: (() => void)[] = []
  #building = 0

  constructor({ maxBytes, stalledMs }: ReplyMemoryOptions) {
    this.maxBytes = maxBytes
    this.#stalledMs = stalledMs
  }

  /** Waits to build a page of at most about `mostBytes`; refuses if they do not fit. */
  async begin(mostBytes: number): Promise<Page | Refusal> {
    if (this.#building >= BUILDERS || this.#waiting.length > 0) {
      if (this.#waiting.length >= MAX_WAITING) return overloaded()
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
    if (this.bytes + mostBytes > this.maxBytes) {
      this.#startNext()
      return overloaded()
    }
    this.#building += 1
    this.bytes += mostBytes
    const end = (): void => {
      this.#building -= 1
      this.bytes -= mostBytes
      this.#startNext()
    }
    return {
      built: (reply, bytes) => {
        end()
        this.#count(reply, bytes)
      },
      dropped: end,
    }
  }

  /** Counts a finished reply; refuses if it does not fit. */
  take(reply: FastifyReply, text: string): Refusal | null {
    if (text.length <= UNCOUNTED_BYTES) return null
    const bytes = Buffer.byteLength(text)
    if (this.bytes + bytes > this.maxBytes) return overloaded()
    this.#count(reply, bytes)
    return null
  }

  #count(reply: FastifyReply, bytes: number): void {
    this.bytes += bytes
    reply.raw.once('close', () => (this.bytes -= bytes))
    // Node resets the socket timeout for idle connections after the reply.
    reply.raw.socket?.setTimeout(this.#stalledMs)
  }

  // Starts in the next turn of the event loop, so other requests run between two pages.
  #startNext(): void {
    if (this.#waiting.length > 0) setImmediate(() => this.#waiting.shift()?.())
  }
}

function overloaded(): Refusal {
  return refuse('overloaded', 'Too many unread replies')
}
