/**
 * Limits memory for replies that are being built or are unread. Each holder (an API key, an operator or a client
 * address) gets a share of it, so that a holder that does not read cannot block the replies of others.
 */
import type { FastifyReply } from 'fastify'
import { refuse, type Refusal } from './reply-error.ts'

/** A page being built. */
export interface Page {
  /** The page is built; its bytes count until the client has read them. */
  built(reply: FastifyReply, bytes: number): void
  /** There is nothing to send. */
  dropped(): void
}

interface Holder {
  id: string
  /** Bytes of its pages being built and its unread replies. */
  bytes: number
  building: number
  waiting: Waiting[]
}

interface Waiting {
  mostBytes: number
  start: (page: Page | Refusal) => void
}

/** Pages to build concurrently: each blocks the event loop for some milliseconds. */
const BUILDERS = 4
/** Requests waiting to build a page. */
const MAX_WAITING = 1_000
/** One holder gets this part of the memory and of the waiting requests. */
const HOLDERS = 4
/** Smaller replies are not counted; the number of connections bounds them. */
const UNCOUNTED_BYTES = 16_384

export class ReplyMemory {
  readonly maxBytes: number
  bytes = 0
  /** In the order in which they get their next turn. */
  readonly #holders = new Map<string, Holder>()
  #building = 0
  #waiting = 0

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
  }

  /** Waits to build a page of at most about `mostBytes`; refuses if they do not fit. */
  async begin(holderId: string, mostBytes: number): Promise<Page | Refusal> {
    const holder = this.#holderOf(holderId)
    const decided = this.#building >= BUILDERS || this.#waiting > 0 ? null : this.#decide(holder, mostBytes)
    if (decided) return decided
    if (this.#waiting >= MAX_WAITING || holder.waiting.length >= MAX_WAITING / HOLDERS) {
      this.#forget(holder)
      return overloaded()
    }
    this.#waiting += 1
    return new Promise((start) => holder.waiting.push({ mostBytes, start }))
  }

  /** Counts a finished reply; refuses if it does not fit. */
  take(holderId: string, reply: FastifyReply, text: string): Refusal | null {
    if (text.length <= UNCOUNTED_BYTES) return null
    const bytes = Buffer.byteLength(text)
    const holder = this.#holderOf(holderId)
    if (!this.#fits(holder, bytes)) {
      this.#forget(holder)
      return overloaded()
    }
    this.#count(holder, reply, bytes)
    return null
  }

  /** Null: wait, because other pages of this holder are still being built. */
  #decide(holder: Holder, mostBytes: number): Page | Refusal | null {
    if (!this.#fits(holder, mostBytes)) {
      if (holder.building > 0) return null
      this.#forget(holder)
      return overloaded()
    }
    this.#building += 1
    holder.building += 1
    this.#add(holder, mostBytes)
    const end = (): void => {
      this.#building -= 1
      holder.building -= 1
      this.#add(holder, -mostBytes)
      this.#startNext()
    }
    return {
      built: (reply, bytes) => {
        this.#count(holder, reply, bytes)
        end()
      },
      dropped: end,
    }
  }

  /** A holder without any bytes can always try: one page may be larger than a share. */
  #fits(holder: Holder, bytes: number): boolean {
    const isInShare = holder.bytes === 0 || holder.bytes + bytes <= this.maxBytes / HOLDERS
    return isInShare && this.bytes + bytes <= this.maxBytes
  }

  #count(holder: Holder, reply: FastifyReply, bytes: number): void {
    // The client left while the page was built.
    if (reply.raw.destroyed) return
    this.#add(holder, bytes)
    reply.raw.once('close', () => {
      this.#add(holder, -bytes)
      this.#startNext()
    })
  }

  #add(holder: Holder, bytes: number): void {
    this.bytes += bytes
    holder.bytes += bytes
    this.#forget(holder)
  }

  #holderOf(id: string): Holder {
    let holder = this.#holders.get(id)
    if (holder === undefined) {
      holder = { id, bytes: 0, building: 0, waiting: [] }
      this.#holders.set(id, holder)
    }
    return holder
  }

  #forget({ id, bytes, building, waiting }: Holder): void {
    if (bytes === 0 && building === 0 && waiting.length === 0) this.#holders.delete(id)
  }

  // Starts in the next turn of the event loop, so other requests run between two pages.
  #startNext(): void {
    if (this.#waiting > 0) setImmediate(() => this.#startOne())
  }

  #startOne(): void {
    if (this.#building >= BUILDERS) return
    for (const holder of this.#holders.values()) {
      const [first] = holder.waiting
      const decided = first ? this.#decide(holder, first.mostBytes) : null
      if (!first || !decided) continue
      holder.waiting.shift()
      this.#waiting -= 1
      // The others come first the next time.
      this.#holders.delete(holder.id)
      this.#holders.set(holder.id, holder)
      this.#forget(holder)
      first.start(decided)
      this.#startNext()
      return
    }
  }
}

function overloaded(): Refusal {
  return refuse('overloaded', 'Too many unread replies')
}
