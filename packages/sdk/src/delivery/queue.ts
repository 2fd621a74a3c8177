/** A queue, bounded in number and bytes. A full queue drops the oldest first, and outcomes and policy decisions last. */
import type { Recorder } from '../recording/context.ts'
import type { DropReason } from './diagnostics.ts'
import { byteLength } from '../recording/text.ts'

interface Identity {
  readonly id: string
  readonly isProtected: boolean
  readonly sequence: number
  readonly recorder?: Recorder | undefined
}

/**
 * JSON without its last brace. The first piece has the fields before the payload. In pieces, because joining large texts copies
 * them.
 */
export type Written = readonly string[]

export class QueuedItem {
  /** The item's `eventId` or `clientRecordId`. */
  readonly id: string
  /** Dropped only when nothing else is left. */
  readonly isProtected: boolean
  readonly sequence: number
  attempts = 0
  /** Recorder that counts this item if it is dropped. */
  readonly recorder: Recorder | undefined
  /** UTF-8 bytes of `json`; an estimate until it is written. */
  bytes: number
  #written: Written = []
  #write: (() => Written) | undefined

  constructor({ id, isProtected, sequence, recorder }: Identity, write: () => Written, bytes: number) {
    this.id = id
    this.isProtected = isProtected
    this.sequence = sequence
    this.recorder = recorder
    this.#write = write
    this.bytes = bytes
  }

  get isWritten(): boolean {
    return this.#write === undefined
  }

  /** Written when it is first read: after the record call, or in it for the spool. */
  get written(): Written {
    if (this.#write) {
      this.#written = this.#write()
      this.#write = undefined
      this.bytes = this.#written.reduce((sum, piece) => sum + byteLength(piece), 1)
    }
    return this.#written
  }

  get json(): string {
    return `${this.written.join('')}}`
  }
}

/** The recorder's next sent event reports the drop. */
export function noteDrop(recorder: Recorder | undefined, reason: DropReason, now: number): void {
  if (!recorder) return
  const dropRange = ((recorder.dropped ??= {})[reason] ??= [0, 0])
  dropRange[0]++
  dropRange[1] = now
}

export interface Bounds {
  readonly maxQueuedEvents: number
  readonly maxQueuedBytes: number
  readonly maxBatch: number
}

export class Queue {
  readonly #bounds: Bounds
  readonly #ordinary = new Fifo()
  readonly #protected = new Fifo()
  /** Oldest first. */
  readonly #drafts = new Set<QueuedItem>()
  #bytes = 0
  // Events in a request still count, because they return if it fails.
  #taken = 0
  #takenBytes = 0

  constructor(bounds: Bounds) {
    this.#bounds = bounds
  }

  /** Number of items, without those taken. */
  get length(): number {
    return this.#ordinary.length + this.#protected.length
  }

  /** Number of items, with those taken and not yet finished. */
  get held(): number {
    return this.length + this.#taken
  }

  get heldBytes(): number {
    return this.#bytes + this.#takenBytes
  }

  /** Bytes of the items, without those taken. */
  get bytes(): number {
    return this.#bytes
  }

  /** Adds an event. Returns the events that were dropped to make room, perhaps the new one. */
  add(event: QueuedItem): readonly QueuedItem[] {
    ;(event.isProtected ? this.#protected : this.#ordinary).push(event)
    this.#bytes += event.bytes
    if (!event.isWritten) this.#drafts.add(event)
    return this.#bound()
  }

  get hasDrafts(): boolean {
    return this.#drafts.size > 0
  }

  /** All events of the next batch are written. */
  get isReady(): boolean {
    return this.#drafts.size === 0 || this.length - this.#drafts.size >= this.#bounds.maxBatch
  }

  /** Writes about `maxBytes` of the oldest drafts. Returns the events that were dropped because drafts grew. */
  write(maxBytes: number): readonly QueuedItem[] {
    let room = maxBytes
    for (const event of this.#drafts) {
      if (room <= 0) break
      room -= this.#write(event)
    }
    return this.#bound()
  }

  /** Returns the bytes of the written event. */
  #write(event: QueuedItem): number {
    this.#bytes -= event.bytes
    void event.written
    this.#bytes += event.bytes
    this.#drafts.delete(event)
    return event.bytes
  }

  #bound(): readonly QueuedItem[] {
    const { maxQueuedEvents, maxQueuedBytes } = this.#bounds
    const dropped: QueuedItem[] = []
    while (this.held > maxQueuedEvents || this.heldBytes > maxQueuedBytes) {
      const oldest = this.#ordinary.shift() ?? this.#protected.shift()
      // The other items are in requests under way.
      if (!oldest) break
      this.#drafts.delete(oldest)
      this.#bytes -= oldest.bytes
      dropped.push(oldest)
    }
    return dropped
  }

  /** Takes the oldest events, as many as fit. Each must be finished or put back. */
  take(maxEvents: number, maxBytes: number): QueuedItem[] {
    const batch: QueuedItem[] = []
    for (let bytes = 0; batch.length < maxEvents;) {
      const lane = this.#older()
      const next = lane.peek()
      if (next && !next.isWritten) this.#write(next)
      if (!next || (batch.length > 0 && bytes + next.bytes > maxBytes)) break
      lane.shift()
      batch.push(next)
      bytes += next.bytes
      this.#bytes -= next.bytes
      this.#takenBytes += next.bytes
      this.#taken++
    }
    return batch
  }

  finish(events: readonly QueuedItem[]): void {
    for (const { bytes } of events) {
      this.#takenBytes -= bytes
      this.#taken--
    }
  }

  /** Puts events back in the order in which they were taken. */
  putBack(events: readonly QueuedItem[]): void {
    this.finish(events)
    for (let at = events.length - 1; at >= 0; at--) {
      const event = events[at] as QueuedItem
      ;(event.isProtected ? this.#protected : this.#ordinary).unshift(event)
      this.#bytes += event.bytes
    }
  }

  /** Empties the queue and returns its events. Events that were taken before stay taken. */
  clear(): QueuedItem[] {
    const events = this.take(Infinity, Infinity)
    this.finish(events)
    return events
  }

  #older(): Fifo {
    const [a, b] = [this.#ordinary.peek(), this.#protected.peek()]
    return b && (!a || b.sequence < a.sequence) ? this.#protected : this.#ordinary
  }
}

/** Moves its head instead of its items. */
class Fifo {
  #items: (QueuedItem | undefined)[] = []
  #head = 0

  get length(): number {
    return this.#items.length - this.#head
  }

  push(item: QueuedItem): void {
    this.#items.push(item)
  }

  peek(): QueuedItem | undefined {
    return this.#items[this.#head]
  }

  shift(): QueuedItem | undefined {
    const item = this.#items[this.#head]
    if (!item) return undefined
    this.#items[this.#head++] = undefined
    if (this.#head > 1_024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }

  unshift(item: QueuedItem): void {
    if (this.#head > 0) this.#items[--this.#head] = item
    else this.#items.unshift(item)
  }
}
