/** Issue records have a sender of their own, which delivers them one by one. */
import { ACCEPTED, verdictOf, type Verdict } from './answer.ts'
import type { CurrentContext, RunScope } from '../recording/context.ts'
import { createDiagnostics, noteUnknown, type Diagnostics, type DropReason } from './diagnostics.ts'
import type { HttpResult, Reply, Request } from './http.ts'
import { joined, readSafely } from '../recording/json.ts'
import type { Settings } from '../options.ts'
import type { PayloadCapture } from '../recording/payload.ts'
import { QueuedItem } from './queue.ts'
import type { Runtime } from './runtime.ts'
import { Sender, type Deliver } from './sender.ts'
import { byteLength, cutText, wellFormed } from '../recording/text.ts'
import { LIMITS } from '../limits.ts'
import type { Ids } from '../recording/uuid.ts'

/** @internal */
export interface RecordName {
  readonly clientRecordId: string
  readonly sdkInstanceId?: string | undefined
}

/** @internal */
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
  /** Type of the detection: TOOL_BLOCKED, TOOL_FAILED, LOOP_DETECTED, BUDGET_EXCEEDED, or your own. */
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
  readonly dropped: Readonly<Partial<Record<DropReason, number>>>
  readonly queued: number
  readonly retried: number
}

/** With these limits, a whole record stays below the 256 KiB of the interface. */
const PAYLOAD_BYTES_MAX = 131_072
const EVIDENCE_BYTES_MAX = 65_536

const MEMBERS = ['recordKind', 'detectionType', 'policyId', 'eventId', 'promptVersionId', 'payload', 'evidence']

/** @internal */
export const ISSUE_BOUNDS = { maxQueuedEvents: 1_000, maxQueuedBytes: 4 * 1_048_576 }
/** Reported codes of the sender, by its own name. All other codes are left to the sender of events. */
const CODES: Readonly<Record<string, string>> = {
  event_rejected: 'issue_record_rejected',
  events_dropped: 'issue_record_dropped',
  unauthorized: 'issue_records_unauthorized',
  forbidden: 'issue_records_forbidden',
}

/** @internal */
export class IssueRecords {
  /** Resolves when the spool, if any, has returned its records. */
  opened: Promise<unknown> | undefined
  readonly sender: Sender
  readonly counts: Diagnostics
  readonly #core: IssueParts
  #isHandedOver = false

  constructor(core: IssueParts) {
    const { settings, request, runtime, diagnostics } = core
    this.#core = core
    this.counts = {
      ...createDiagnostics(undefined, runtime),
      report(level, code, message) {
        const codeFault = CODES[code]
        if (codeFault) diagnostics.report(level, codeFault, message)
      },
    }
    const ofRecords = { ...ISSUE_BOUNDS, maxBatch: 1, noun: 'issue records', flushIntervalMs: 0 }
    const deliver: Deliver = async ([record]) => {
      const { id, json } = record as QueuedItem
      return receiptOf(await request('POST', '/issue-records', { body: json, timeoutMs: settings.requestTimeoutMs }), [
        id,
      ])
    }
    this.sender = new Sender({ ...settings, ...ofRecords }, deliver, runtime, this.counts)
    if (!settings.enabled) this.sender.close('closed')
  }

  /** Null if none was reported. */
  get counters(): IssueRecordCounters | null {
    const { recorded, recovered, accepted, rejected, dropped, queued, retried } = this.counts.counters(this.sender.held)
    return recorded === 0 ? null : { recorded, recovered, accepted, rejected, dropped, queued, retried }
  }

  /**
   * Never throws and never waits. The `clientRecordId` is the same in every attempt; undefined if the record is
   * dropped. @param as the name by which another process looks for the record.
   */
  report(scope: RunScope | undefined, report: IssueReport, as?: RecordName): string | undefined {
    this.counts.count('recorded')
    if (!this.sender.isOpen) return this.#drop('closed')
    try {
      const { clientRecordId: id, sdkInstanceId } = as ?? { clientRecordId: this.#core.ids.uuid() }
      const json = this.#toJson({ clientRecordId: id, sdkInstanceId }, scope, report)
      const identity = { id, isProtected: false, sequence: this.sender.nextSequence() }
      this.sender.add(new QueuedItem(identity, () => [json.slice(0, -1)], byteLength(json)))
      this.#handOver()
      return id
    } catch {
      return this.#drop('failed')
    }
  }

  flush(timeoutMs: number): Promise<unknown> {
    return this.sender.flush(timeoutMs)
  }

  /** Keeps a serverless function running while records wait. */
  #handOver(): void {
    const { waitUntil, flushTimeoutMs } = this.#core.settings
    if (!waitUntil || this.#isHandedOver) return
    this.#isHandedOver = true
    const delivered = this.flush(flushTimeoutMs).finally(() => (this.#isHandedOver = false))
    readSafely(() => waitUntil(delivered), undefined)
  }

  #toJson(
    { clientRecordId, sdkInstanceId }: Partial<RecordName>,
    scope: RunScope | undefined,
    report: IssueReport,
  ): string {
    const { settings, runtime, capturePayload, diagnostics } = this.#core
    noteUnknown(diagnostics, 'reportIssue()', report, MEMBERS)
    const text = (value: string | undefined): string | undefined =>
      value === undefined ? undefined : cutText(wellFormed(value), LIMITS.textChars)
    const { released } = settings
    const sentPayload = released.release === undefined ? report.payload : joined(released, report.payload)
    const payload = capturePayload(sentPayload).write(PAYLOAD_BYTES_MAX).join('')
    const evidence = capturePayload(report.evidence).write(EVIDENCE_BYTES_MAX).join('')
    const current = this.#core.context.getStore()
    const ofSpan = current?.scope === scope ? current?.span.marks?.promptVersionId : undefined
    const promptVersionId = report.promptVersionId ?? ofSpan ?? scope?.annotations.get('promptVersionId')
    const record = {
      sdkInstanceId: sdkInstanceId ?? settings.clientId,
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

  #drop(reason: DropReason): undefined {
    this.counts.drop(reason)
    this.counts.report('warning', 'events_dropped', `1 issue records were dropped: ${reason}.`)
  }
}

/** Statuses that do not make a record faulty: a proxy may answer 401 or 403. */
const TEMPORARY: ReadonlySet<number> = new Set([401, 403, 408, 429])

/** @internal A 2xx from something else, such as a proxy's page, confirms nothing. */
export function isReceipt(json: unknown): boolean {
  return typeof json === 'object' && json !== null && 'recordId' in json
}

/** @internal */
export function receiptOf(result: HttpResult, [id = '']: readonly string[]): Verdict {
  const verdict = verdictOf(result, [], (json) => (isReceipt(json) ? ACCEPTED : undefined))
  const { status = 0 } = result as Partial<Reply>
  const isRefused = verdict.kind !== 'stop' && status >= 400 && status < 500 && !TEMPORARY.has(status)
  return isRefused ? { ...ACCEPTED, rejected: new Map([[id, `status ${status}`]]) } : verdict
}
