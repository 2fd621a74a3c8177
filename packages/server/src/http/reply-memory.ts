/** Memory for replies: what is being built, and what clients have not read yet. */
import type { FastifyReply } from 'fastify'
import { refuse, type Refusal } from './reply-error.ts'

export interface ReplyMemoryOptions {
  maxBytes: number
  /** A client that takes nothing of its reply for so long loses its connection. */
  stalledMs: number
}

/** A page that is being built. */
export interface Page {
  /** It is built; its bytes count until the client has them. */
  built(reply: FastifyReply, bytes: number): void
  /** There is nothing to send. */
  dropped(): void
}

/** Pages that are built at a time: each keeps the event loop for some milliseconds. */
const BUILDERS = 4
/** Requests that wait for their turn. */
const MAX_WAITING = 1_000
/** Smaller replies are not counted: together they are bounded by the number of connections. */
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

  /** Waits for the turn to build a page of at most about `mostBytes`; refuses where they do not fit. */
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

  /** Counts a reply that is built already; the refusal where it does not fit. */
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
    // Node sets the timeout of idle connections when the reply has gone.
    reply.raw.socket?.setTimeout(this.#stalledMs)
  }

  // In the next turn of the event loop, so that other requests are answered between two pages.
  #startNext(): void {
    if (this.#waiting.length > 0) setImmediate(() => this.#waiting.shift()?.())
  }
}

function overloaded(): Refusal {
  return refuse('overloaded', 'Too many replies wait to be read')
}
