/**
 * Delivers the queue in batches, one request after another.
 *
 *   idle ──add──▶ waiting ──full batch, interval since the last request, flush──▶ sending ──queue empty──▶ idle
 *                   ▲                                         │
 *                   └────────── more events, or backoff ──────┘
 *   any ──close──▶ closed
 *
 * A refused key (401, 403) is a backoff of minutes, in which no flush waits.
 *
 * Only `#enter` changes the state. Items leave the queue before a request begins. When it ends, for any reason, they
 * are finished or put back. Events and issue records have a sender each.
 *
 * Edge workers bind timers and requests to the host's request that began them: they end silently with it. There,
 * each flush sends by itself (flush-here.ts), beside this machine.
 */
import type { KeyRefusal, Verdict } from './answer.ts'
import type { Diagnostics, DropReason, FlushResult } from './diagnostics.ts'
import { LIMITS } from '../limits.ts'
import { noteDrop, Queue, type Bounds, type QueuedItem } from './queue.ts'
import { REFUSED_MS, waitMs } from './retry.ts'
import type { Runtime, Timer } from './runtime.ts'
import type { Keeper } from './spool.ts'

/** @internal */
export interface SenderSettings extends Bounds {
  readonly baseUrl: string
  readonly flushIntervalMs: number
  readonly requestTimeoutMs: number
  /** Noun for the delivered items in messages: `events` or `issue records`. */
  readonly noun: string
  /** Timers and requests may end with the host's request. */
  readonly isBound: boolean
}

/** @internal Resolves within `requestTimeoutMs`. */
export type Deliver = (batch: readonly QueuedItem[]) => Promise<Verdict>

/** A request that is not over this long after its timeout is lost: a function was frozen and lost its connection. */
const LOST_MS = 5_000
/** Bytes that are written between two turns of the host. Masking more would make the host wait. */
const WRITTEN_BYTES = 262_144

type State = 'idle' | 'waiting' | 'sending' | 'closed'
type Outcome = 'sent' | 'rejected' | 'dropped'

/** @internal */
export interface Flush {
  /** Sequence number of the last event that it covers. */
  readonly upTo: number
  readonly counts: Record<Outcome, number>
  left: number
  end(): void
}

/** @internal */
export class Sender {
  readonly #settings: SenderSettings
  readonly #deliverBatch: Deliver
  readonly #runtime: Runtime
  readonly #diagnostics: Diagnostics
  readonly #queue: Queue
  #state: State = 'idle'
  #closedBy: DropReason = 'closed'
  #timer: Timer | undefined
  #isSoon = false
  #isWriting = false
  #isHeld = false
  #failures = 0
  #notBefore = 0
  /** When the last request ended. The first event after a pause is sent at once, so that little is lost at SIGKILL. */
  #sentAt = -Infinity
  #refusal: KeyRefusal | undefined
  #maxBatch: number
  readonly #flushes = new Set<Flush>()
  #sequence = 0
  #keeper: Keeper | undefined
  /** Requests under way, and when each began. Several only where each flush sends by itself. */
  readonly #batches = new Map<QueuedItem[], number>()

  constructor(settings: SenderSettings, deliver: Deliver, runtime: Runtime, diagnostics: Diagnostics) {
    this.#settings = settings
    this.#maxBatch = settings.maxBatch
    this.#deliverBatch = deliver
    this.#runtime = runtime
    this.#diagnostics = diagnostics
    this.#queue = new Queue(settings)
  }

  get held(): { queued: number; queuedBytes: number } {
    return { queued: this.#queue.held, queuedBytes: this.#queue.heldBytes }
  }

  nextSequence(): number {
    return ++this.#sequence
  }

  get isOpen(): boolean {
    return this.#state !== 'closed'
  }

  /** Call it before the first event. */
  keepIn(keeper: Keeper): void {
    this.#keeper = keeper
  }

  /** False if it was not queued. `isKept`: the keeper has it already. */
  add(event: QueuedItem, isKept = false): boolean {
    if (this.#state === 'closed') {
      this.#diagnostics.drop(this.#closedBy)
      return false
    }
    if (!isKept) this.#keeper?.append(event)
    const dropped = this.#queue.add(event)
    if (dropped.length > 0) this.#drop(dropped, 'queue_full')
    this.#writeSoon()
    if (this.#state === 'sending') this.#giveUpLost()
    else if (this.#state === 'idle' || this.#isDueEarly()) this.#wait()
    return !dropped.includes(event)
  }

  /** Covers events recorded before the call. */
  flush(timeoutMs: number): Promise<FlushResult> {
    const left = this.#queue.held
    return new Promise((resolve) => {
      // Only this timer keeps the process running.
      const deadline = this.#runtime.timer(timeoutMs, () => flush.end(), true)
      const flush: Flush = {
        upTo: this.#sequence,
        counts: { sent: 0, rejected: 0, dropped: 0 },
        left,
        end: () => {
          deadline.cancel()
          this.#flushes.delete(flush)
          resolve({ ...flush.counts, left: flush.left })
        },
      }
      if (left === 0 || this.#refusal) return flush.end()
      this.#flushes.add(flush)
      if (this.#settings.isBound) return void this.#flushHere(flush).catch(() => flush.end())
      if (this.#state === 'sending') this.#giveUpLost()
      if (this.#state === 'waiting') this.#wait()
    })
  }

  async #flushHere(flush: Flush): Promise<void> {
    // The timers behind these flags may have ended with another request.
    this.#isSoon = this.#isWriting = false
    const { flushHere } = await import('./flush-here.ts')
    await flushHere(flush, this.#runtime, (patienceMs) => {
      if (!this.#flushes.has(flush) || this.#refusal) return 'over'
      const isReady = !this.#isHeld && this.#queue.length > 0 && this.#notBefore <= this.#runtime.now()
      const batch = isReady ? this.#takeBatch(this.#maxBatch) : this.#oldBatch(patienceMs)
      return batch && this.#deliver(batch)
    })
    if (this.#state === 'waiting') this.#wait()
  }

  /** Remaining events count as dropped; the spool keeps them for the next process. */
  close(reason: DropReason = this.#refusal ?? 'closed'): void {
    if (this.#state === 'closed') return
    this.#closedBy = reason
    this.#enter('closed')
    this.#keeper?.close()
    this.#keeper = undefined
    const taken = [...this.#batches.keys()].flat()
    this.#batches.clear()
    this.#queue.finish(taken)
    this.#drop([...taken, ...this.#queue.clear()], reason)
  }

  /** Takes the batch that the end of the process sends while it blocks. Empty if there is nothing to send. */
  takeAtEnd(): QueuedItem[] {
    if (this.#state === 'closed' || this.#refusal) return []
    // The answer to a request under way comes too late. The service stores an item once.
    for (const batch of this.#batches.keys()) this.#queue.putBack(batch)
    this.#batches.clear()
    this.#enter('sending')
    return this.#takeBatch(this.#settings.maxBatch)
  }

  /** @param verdict undefined if the batch was not sent in time. */
  concludeAtEnd(batch: QueuedItem[], verdict: Verdict | undefined): void {
    if (verdict?.kind === 'events') this.#conclude(batch, verdict)
    else this.#queue.putBack(batch)
  }

  #enter(state: State): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#state = state
  }

  #wait(): void {
    if (this.#queue.length === 0) return this.#enter('idle')
    const now = this.#runtime.now()
    const { flushIntervalMs } = this.#settings
    const isDue = this.#hasFullBatch() || this.#flushes.size > 0
    // The clock may have been set back.
    const pause = isDue ? 0 : Math.min(this.#sentAt + flushIntervalMs - now, flushIntervalMs)
    const wait = Math.max(this.#notBefore - now, pause)
    this.#enter('waiting')
    if (wait > 0) this.#timer = this.#runtime.timer(wait, () => this.#send())
    else this.#sendSoon()
  }

  hold(): void {
    this.#isHeld = true
  }

  resume(): void {
    this.#isHeld = false
    this.#writeSoon()
    if (this.#state === 'waiting') this.#wait()
  }

  /** Writes drafts between two turns of the host. */
  #writeSoon(): void {
    if (this.#isWriting || this.#isHeld || !this.#queue.hasDrafts) return
    this.#isWriting = true
    this.#runtime.soon(() => {
      this.#isWriting = false
      this.#drop(this.#queue.write(WRITTEN_BYTES), 'queue_full')
      this.#writeSoon()
    })
  }

  /** Sends after the current code of the host: a record call must not wait for the request. */
  #sendSoon(): void {
    if (this.#isSoon) return
    this.#isSoon = true
    this.#runtime.soon(() => {
      this.#isSoon = false
      this.#send()
    })
  }

  #send(): void {
    if (this.#state !== 'waiting') return
    // A timer may fire a fraction of a millisecond early.
    if (this.#notBefore > this.#runtime.now()) return this.#wait()
    if (this.#isHeld) return
    // A flush has sent all items.
    if (this.#queue.length === 0) return this.#enter('idle')
    if (!this.#queue.isReady && !this.#settings.isBound) return this.#sendSoon()
    this.#enter('sending')
    void this.#deliver(this.#takeBatch(this.#maxBatch))
  }

  #takeBatch(maxEvents: number): QueuedItem[] {
    // Room for the brackets and commas.
    return this.#queue.take(maxEvents, LIMITS.batchBytes - LIMITS.batchEvents - 1)
  }

  async #deliver(batch: QueuedItem[]): Promise<void> {
    this.#batches.set(batch, this.#runtime.now())
    for (const event of batch) if (event.attempts++ > 0) this.#diagnostics.count('retried')
    const verdict = await this.#deliverBatch(batch).catch(() => retryLater('the SDK failed'))
    // If this request was given up, another request sent its events.
    if (this.#batches.has(batch)) this.#conclude(batch, verdict)
  }

  #giveUpLost(): void {
    const lost = this.#oldBatch(this.#settings.requestTimeoutMs + LOST_MS)
    if (lost) this.#conclude(lost, retryLater('a request was lost'))
  }

  #oldBatch(ageMs: number): QueuedItem[] | undefined {
    const now = this.#runtime.now()
    for (const [batch, begunAt] of this.#batches) if (now - begunAt >= ageMs) return batch
    return undefined
  }

  #conclude(batch: QueuedItem[], verdict: Verdict): void {
    const { noun, maxBatch } = this.#settings
    this.#batches.delete(batch)
    this.#sentAt = this.#runtime.now()
    this.#diagnostics.count('requests')
    if (verdict.kind !== 'events') this.#diagnostics.count('failedRequests')
    if (verdict.kind === 'events') {
      const { retry, rejected: refused } = verdict
      const again = batch.filter(({ id }) => retry.has(id))
      const rejected = batch.filter(({ id }) => refused.has(id))
      const sent = batch.filter(({ id }) => !retry.has(id) && !refused.has(id))
      this.#queue.finish(sent)
      this.#queue.finish(rejected)
      this.#queue.putBack(again)
      this.#diagnostics.count('accepted', sent.length)
      this.#diagnostics.count('rejected', rejected.length)
      if (rejected.length > 0) {
        const codes = [...new Set(verdict.rejected.values())].join(', ')
        const message = `The service rejected ${rejected.length} ${noun}: ${codes}.`
        this.#diagnostics.report('warning', 'event_rejected', message)
      }
      this.#finished(sent, 'sent')
      this.#finished(rejected, 'rejected')
      this.#maxBatch = maxBatch
      if (again.length > 0 && !verdict.now) this.#backOff(null, `the service could not store all ${noun}`)
      else this.#recovered()
    } else if (verdict.kind === 'retry') {
      this.#queue.putBack(batch)
      this.#backOff(verdict.retryAfter, verdict.why)
    } else if (verdict.kind === 'split' && batch.length > 1) {
      this.#queue.putBack(batch)
      this.#maxBatch = Math.ceil(batch.length / 2)
    } else if (verdict.kind === 'stop') {
      this.#queue.putBack(batch)
      const fault = verdict.reason === 'forbidden' ? 'lacks the scope events:write' : 'is missing, invalid or revoked'
      const message = `The API key ${fault}: ${noun} wait. The next try is in ${REFUSED_MS / 60_000} minutes.`
      this.#diagnostics.report('error', verdict.reason, message)
      this.#refusal = verdict.reason
      this.#failures++
      this.#notBefore = this.#runtime.now() + REFUSED_MS
      if (!this.#settings.isBound) for (const flush of this.#flushes) flush.end()
    } else {
      this.#queue.finish(batch)
      this.#drop(batch, 'refused')
    }
    if (this.#state === 'sending' && this.#batches.size === 0) this.#wait()
  }

  #backOff(retryAfter: string | null, why: string): void {
    const { now, random } = this.#runtime
    this.#failures++
    this.#notBefore = now() + Math.ceil(waitMs(this.#failures, retryAfter, now(), random()))
    this.#diagnostics.report(
      'warning',
      'delivery_failing',
      `Events stay queued because ${this.#settings.baseUrl} does not accept them: ${why}.`,
    )
  }

  #recovered(): void {
    if (this.#failures > 0) this.#diagnostics.report('info', 'delivery_recovered', 'The service accepts events again.')
    this.#failures = 0
    this.#notBefore = 0
    this.#refusal = undefined
  }

  #drop(events: readonly QueuedItem[], reason: DropReason): void {
    if (events.length === 0) return
    for (const { recorder } of events) noteDrop(recorder, reason, this.#runtime.now())
    this.#diagnostics.drop(reason, events.length)
    this.#diagnostics.report(
      'warning',
      'events_dropped',
      `${events.length} ${this.#settings.noun} were dropped: ${reason}.`,
    )
    this.#finished(events, 'dropped')
  }

  #finished(events: readonly QueuedItem[], outcome: Outcome): void {
    this.#keeper?.finish(events)
    for (const flush of this.#flushes) {
      const covered = events.filter(({ sequence }) => sequence <= flush.upTo).length
      flush.counts[outcome] += covered
      flush.left -= covered
      // A flush that sends by itself ends in its own request.
      if (flush.left === 0 && !this.#settings.isBound) flush.end()
    }
  }

  #hasFullBatch(): boolean {
    return this.#queue.length >= this.#settings.maxBatch || this.#queue.bytes >= LIMITS.batchBytes
  }

  /** A full batch skips the interval, but never a backoff. */
  #isDueEarly(): boolean {
    return !this.#isSoon && this.#hasFullBatch() && this.#notBefore <= this.#runtime.now()
  }
}

const retryLater = (why: string): Verdict => ({ kind: 'retry', retryAfter: null, why })
