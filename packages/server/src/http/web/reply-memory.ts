/** The shares keep clients that do not read from blocking the replies of others. */
import type { FastifyReply } from 'fastify'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { LEFT, refuse, type Refusal } from './reply-error.ts'
import { Shares } from '../../domain/tenants/shares.ts'
import { type Holder, TurnsByWorkspace } from '../../storage/engine/turns-by-workspace.ts'

export interface Page {
  built(reply: FastifyReply, bytes: number): void
  dropped(): void
}

interface Waiting {
  holder: Holder
  mostBytes: number
  isOver: () => boolean
  start: (page: Page | Refusal) => void
}

/** Bounded, because each page that is built blocks the event loop for some milliseconds. */
const BUILDERS = { most: 8, ofWorkspace: 2, ofCredential: 2 }
const WAITING = { most: 1_000, ofWorkspace: 250, ofCredential: 125 }
/** The memory has this many equal parts; a workspace may use one. */
const WORKSPACES = 4
/**
 * Smaller replies are not counted: the number of connections bounds them, because each has at most one
 * (connections.ts).
 */
const UNCOUNTED_BYTES = 16_384

export class ReplyMemory {
  readonly maxBytes: number
  readonly #memory: Shares
  readonly #building = new Shares(BUILDERS)
  readonly #waiting = new Shares(WAITING)
  readonly #queue = new TurnsByWorkspace<Waiting>()

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
    const ofWorkspace = Math.max(maxBytes / WORKSPACES, 2 * LIMITS.pageBytes)
    this.#memory = new Shares({ most: maxBytes, ofWorkspace, ofCredential: ofWorkspace / 2 })
  }

  get bytes(): number {
    return this.#memory.used
  }

  async begin(holder: Holder, mostBytes: number, isOver: () => boolean): Promise<Page | Refusal> {
    const decided = this.#waiting.usedBy(holder.workspace) > 0 ? null : this.#decide(holder, mostBytes)
    if (decided) return decided
    if (!this.#waiting.take(holder, 1)) return overloaded()
    return new Promise((start) => this.#queue.push({ holder, mostBytes, isOver, start }))
  }

  take(holder: Holder, reply: FastifyReply, text: string): Refusal | null {
    if (text.length <= UNCOUNTED_BYTES) return null
    const bytes = Buffer.byteLength(text)
    if (!this.#memory.fits(holder, bytes)) return overloaded()
    this.#count(holder, reply, bytes)
    return null
  }

  /** Null: the reply must wait for other pages that are being built. */
  #decide(holder: Holder, mostBytes: number): Page | Refusal | null {
    if (!this.#building.fits(holder, 1)) return null
    if (!this.#memory.fits(holder, mostBytes)) {
      return this.#building.usedBy(holder.workspace) > 0 ? null : overloaded()
    }
    this.#building.add(holder, 1)
    this.#memory.add(holder, mostBytes)
    const end = (): void => {
      this.#building.add(holder, -1)
      this.#memory.add(holder, -mostBytes)
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

  #count(holder: Holder, reply: FastifyReply, bytes: number): void {
    if (reply.raw.destroyed) return
    this.#memory.add(holder, bytes)
    reply.raw.once('close', () => {
      this.#memory.add(holder, -bytes)
      this.#startNext()
    })
  }

  // Starts the next page in the next turn of the event loop, so that other requests run in between.
  #startNext(): void {
    if (this.#waiting.used > 0) setImmediate(() => this.#startOne())
  }

  #startOne(): void {
    let decided: Page | Refusal | null = null
    const next = this.#queue.shift(({ holder, mostBytes, isOver }) => {
      decided = isOver() ? LEFT : this.#decide(holder, mostBytes)
      return decided !== null
    })
    if (next === null || decided === null) return
    this.#waiting.add(next.holder, -1)
    next.start(decided)
    this.#startNext()
  }
}

function overloaded(): Refusal {
  return refuse('overloaded', 'Too many unread replies')
}
