/**
 * Delivers issue records: detections and recoveries.
 *
 *   idle --report--> sending --accepted, refused--> sending the next, or idle
 *                       |  ^
 *                       v  | backoff, Retry-After
 *                     waiting              any --close--> closed: queued records are dropped
 *
 * A refused key (401, 403) is a backoff of minutes, in which no flush waits.
 */
import type { CurrentContext, RunScope } from './context.ts'
import type { Diagnostics } from './diagnostics.ts'
import type { Request } from './http.ts'
import { keyRefusal, type KeyRefusal } from './answer.ts'
import { joined, readSafely } from './json.ts'
import type { Settings } from './options.ts'
import type { PayloadCapture } from './payload.ts'
import { REFUSED_MS, waitMs } from './retry.ts'
import type { Runtime, Timer } from './runtime.ts'
import type { Keeper, Kept, SpoolUser } from './spool.ts'
import { byteLength, cutText, wellFormed } from './text.ts'
import { LIMITS } from './limits.ts'
import type { Ids } from './uuid.ts'

/** @internal The part of a client that this needs. */
export interface IssueParts {
  readonly settings: Settings
  readonly runtime: Runtime
  readonly ids: Ids
  readonly request: Request
  readonly diagnostics: Diagnostics
  readonly capturePayload: PayloadCapture
  readonly context: CurrentContext
}

export type RecordKind = 'DETECTION' | 'RECOVERY'

/** A detection or a recovery. Keep the names of detectors and tools stable, because the service groups by them. */
export interface IssueReport {
  /** Default: DETECTION. */
  recordKind?: RecordKind | undefined
  /** For example TOOL_BLOCKED, TOOL_FAILED, LOOP_DETECTED, BUDGET_EXCEEDED, or your own. */
  detectionType: string
  policyId?: string | undefined
  /** Id of a related event in the same run. */
  eventId?: string | undefined
  promptVersionId?: string | undefined
  /** Structured facts: `toolName`, `tools`, `riskSignals`, `reasonCode`. */
  payload?: Readonly<Record<string, unknown>> | undefined
  /** Supporting facts, for example `decision`. */
  evidence?: Readonly<Record<string, unknown>> | undefined
}

/** Always: recorded = accepted + rejected + every `dropped` + queued. */
export interface IssueRecordCounters {
  /** Reports, and records recovered from the spool. */
  readonly recorded: number
  /** Records that an earlier process left in the spool; counted in `recorded` too. */
  readonly recovered: number
  readonly accepted: number
  readonly rejected: number
  readonly dropped: Readonly<Partial<Record<IssueDropReason, number>>>
  readonly queued: number
  readonly retried: number
}

export type IssueDropReason = 'queue_full' | 'closed' | 'unauthorized' | 'forbidden' | 'failed'

/** With the other fields, a record stays below the 256 KiB of the interface. */
const PAYLOAD_BYTES_MAX = 131_072
const EVIDENCE_BYTES_MAX = 65_536
const QUEUED_MAX = 1_000
const QUEUED_BYTES_MAX = 4 * 1_048_576

/** `id` is the `clientRecordId`. */
interface Queued extends Kept {
  readonly bytes: number
  attempts: number
}

/** @internal */
export class IssueRecords {
  /** Resolves when the spool, if any, has returned the records it kept. */
  opened: Promise<unknown> | undefined
  readonly #core: IssueParts
  readonly #queue: Queued[] = []
  #bytes = 0
  #state: 'idle' | 'sending' | 'waiting' | 'closed' = 'idle'
  #timer: Timer | undefined
  #failures = 0
  readonly #counts = { recorded: 0, recovered: 0, accepted: 0, rejected: 0, retried: 0 }
  readonly #dropped = new Map<IssueDropReason, number>()
  readonly #waiting = new Set<() => void>()
  #keeper: Keeper | undefined
  #isHandedOver = false
  /** Why the service refused the key the last time. */
  #refusal: KeyRefusal | undefined

  constructor(core: IssueParts) {
    this.#core = core
    if (!core.settings.enabled) this.#state = 'closed'
  }

  /** Null if none was reported. */
  get counters(): IssueRecordCounters | null {
    if (this.#counts.recorded === 0) return null
    return { ...this.#counts, dropped: Object.fromEntries(this.#dropped), queued: this.#queue.length }
  }

  /**
   * Queues one record; never throws and never waits. Returns its `clientRecordId`, the same in every attempt; undefined
   * if the record is dropped.
   */
  report(scope: RunScope | undefined, report: IssueReport): string | undefined {
    this.#counts.recorded++
    if (this.#state === 'closed') return this.#drop('closed')
    try {
      const id = this.#core.ids.uuid()
      const json = this.#toJson(id, scope, report)
      this.#keeper?.append({ id, json })
      this.#add({ id, json })
      this.#handOver()
      return id
    } catch {
      return this.#drop('failed')
    }
  }

  /** Stores the records in a place that outlives the process. Use it before the first one. */
  get spoolUser(): SpoolUser<{ clientRecordId: unknown }> {
    return {
      suffix: '.issues',
      isOpen: () => this.#state !== 'closed',
      hasRoom: () => this.#queue.length < QUEUED_MAX / 2 && this.#bytes < QUEUED_BYTES_MAX / 2,
      keepIn: (keeper) => void (this.#keeper = keeper),
      idOf: ({ clientRecordId }) => (typeof clientRecordId === 'string' ? clientRecordId : undefined),
      restore: (record) => {
        this.#counts.recorded++
        this.#counts.recovered++
        this.#add(record)
      },
    }
  }

  /** The records that may be sent now. */
  get waiting(): readonly Kept[] {
    return this.#refusal ? [] : [...this.#queue]
  }

  /** Another process delivered it, while this one ends. */
  received(id: string): void {
    const record = this.#queue.find((one) => one.id === id)
    if (!record) return
    this.#counts.accepted++
    this.#remove(record)
  }

  #add({ id, json }: Kept): void {
    const bytes = byteLength(json)
    this.#queue.push({ id, json, bytes, attempts: 0 })
    this.#bytes += bytes
    // The first one may be in a request.
    while (this.#queue.length > QUEUED_MAX || this.#bytes > QUEUED_BYTES_MAX) {
      const oldest = this.#queue[this.#state === 'sending' ? 1 : 0]
      if (!oldest) break
      this.#remove(oldest)
      this.#drop('queue_full')
    }
    if (this.#state === 'idle') this.#next()
  }

  /** Waits until the queue is empty or the time is up. Returns how many records are left. */
  async flush(timeoutMs: number): Promise<number> {
    if (this.#queue.length === 0 || this.#refusal) return this.#queue.length
    await new Promise<void>((resolve) => {
      const timer = this.#core.runtime.timer(timeoutMs, done, true)
      const waiting = this.#waiting
      function done(): void {
        timer.cancel()
        waiting.delete(done)
        resolve()
      }
      waiting.add(done)
    })
    return this.#queue.length
  }

  close(reason: IssueDropReason = this.#refusal ?? 'closed'): void {
    this.#state = 'closed'
    this.#timer?.cancel()
    this.#keeper?.close()
    this.#keeper = undefined
    for (const _ of this.#queue) this.#drop(reason)
    this.#queue.length = 0
    this.#bytes = 0
    this.#wake()
  }

  /** Keeps a serverless function running while records wait. */
  #handOver(): void {
    const { waitUntil, flushTimeoutMs } = this.#core.settings
    if (!waitUntil || this.#isHandedOver) return
    this.#isHandedOver = true
    const delivered = this.flush(flushTimeoutMs).finally(() => (this.#isHandedOver = false))
    readSafely(() => waitUntil(delivered), undefined)
  }

  #toJson(clientRecordId: string, scope: RunScope | undefined, report: IssueReport): string {
    const { settings, runtime, capturePayload } = this.#core
    const text = (value: string | undefined): string | undefined =>
      value === undefined ? undefined : cutText(wellFormed(value), LIMITS.textChars)
    const { released } = settings
    const told = released.release === undefined ? report.payload : joined(released, report.payload)
    const payload = capturePayload(told).write(PAYLOAD_BYTES_MAX)
    const evidence = capturePayload(report.evidence).write(EVIDENCE_BYTES_MAX)
    const current = this.#core.context.getStore()
    const ofSpan = current?.scope === scope ? current?.span.promptVersionId : undefined
    const promptVersionId = report.promptVersionId ?? ofSpan ?? scope?.annotations.get('promptVersionId')
    const record = {
      sdkInstanceId: settings.clientId,
      clientRecordId,
      recordKind: report.recordKind ?? 'DETECTION',
      detectionType: text(report.detectionType),
      runId: scope?.runId,
      sessionId: text(scope?.sessionId),
      eventId: text(report.eventId),
      // The interface requires it. The name identifies an agent without an id.
      agentId: text(scope?.agentId ?? scope?.agentName ?? settings.agentId ?? settings.agentName),
      policyId: text(report.policyId),
      promptVersionId: typeof promptVersionId === 'string' ? promptVersionId : undefined,
      detectedAt: runtime.now(),
    }
    return `${JSON.stringify(record).slice(0, -1)},"payload":${payload},"evidence":${evidence}}`
  }

  #next(): void {
    const [first] = this.#queue
    if (first === undefined) {
      this.#state = 'idle'
      this.#wake()
      return
    }
    this.#state = 'sending'
    void this.#send(first)
  }

  async #send(record: Queued): Promise<void> {
    const { request, settings, runtime, diagnostics } = this.#core
    record.attempts++
    if (record.attempts > 1) this.#counts.retried++
    const reply = await request('POST', '/issue-records', { body: record.json, timeoutMs: settings.requestTimeoutMs })
    if (this.#queue[0] !== record) return // closed meanwhile
    const status = reply.kind === 'reply' ? reply.status : null
    const refusal = reply.kind === 'reply' ? keyRefusal(reply) : undefined
    if (refusal) {
      diagnostics.report('error', `issue_records_${refusal}`, `The service refused issue records: ${status}.`)
      this.#refusal = refusal
      this.#state = 'waiting'
      this.#timer = runtime.timer(REFUSED_MS, () => this.#next())
      this.#wake()
    } else if (reply.kind === 'reply' && reply.ok && isReceipt(reply.json)) {
      this.#counts.accepted++
      this.#done(record)
    } else if (status !== null && status >= 400 && status < 500 && !TEMPORARY.has(status)) {
      this.#counts.rejected++
      diagnostics.report('warning', 'issue_record_rejected', `The service rejected an issue record: ${status}.`)
      this.#done(record)
    } else {
      const retryAfter = reply.kind === 'reply' ? reply.header('retry-after') : null
      this.#state = 'waiting'
      const delay = waitMs(++this.#failures, retryAfter, runtime.now(), runtime.random())
      this.#timer = runtime.timer(delay, () => this.#next())
    }
  }

  #done(record: Queued): void {
    this.#failures = 0
    this.#refusal = undefined
    this.#remove(record)
    this.#next()
  }

  #remove(record: Queued): void {
    this.#queue.splice(this.#queue.indexOf(record), 1)
    this.#bytes -= record.bytes
    this.#keeper?.finish([record])
  }

  #drop(reason: IssueDropReason): undefined {
    this.#dropped.set(reason, (this.#dropped.get(reason) ?? 0) + 1)
    this.#core.diagnostics.report('warning', 'issue_record_dropped', `An issue record was dropped: ${reason}.`)
  }

  #wake(): void {
    for (const wake of this.#waiting) wake()
  }
}

/** 401 and 403 of a proxy say nothing about the record. */
const TEMPORARY: ReadonlySet<number> = new Set([401, 403, 408, 429])

/** @internal A 2xx from something else, such as a proxy's page, confirms nothing. */
export function isReceipt(json: unknown): boolean {
  return typeof json === 'object' && json !== null && 'recordId' in json
}
