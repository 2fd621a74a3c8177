import type { RecordKind, RecordOrigin, RecordStatus } from '@tacho/contract/issue-record.ts'
import type { AuditEntry } from './audit.ts'
import type { Page } from './page.ts'
import type { RowOf } from './tables.ts'

export interface IssueRecordStore {
  /**
   * Stores a record and queues its review. The same client and client record id are stored once: the first write wins,
   * and a duplicate returns the current status. Null: it was erased, or names what was erased after it.
   */
  receiveIssueRecord(record: NewIssueRecord): Promise<IssueRecordReceived | null>
  findIssueRecord(environmentId: string, id: string): Promise<IssueRecordWhole | null>
  /** Newest id first. */
  listIssueRecords(
    environmentId: string,
    filter: IssueRecordFilter,
    page: IssueRecordPage,
  ): Promise<Page<IssueRecordRow>>
  /** Marks the undecided records among these as being evaluated, and returns them. */
  startReview(environmentId: string, ids: string[], now: number): Promise<RecordInReview[]>
  /**
   * Decides records: each joins or opens the issue of its fingerprint, and its work is finished. Skips a record that is
   * no longer being evaluated, so that nothing counts twice.
   */
  decideIssueRecords(environmentId: string, decisions: IssueDecision[], now: number): Promise<DecidedIssues>
  /** Fails the review of a record permanently, and removes its work. */
  failIssueRecord(environmentId: string, id: string, failure: string, now: number): Promise<void>
  /** Queues a failed record for review again. `changed` is false if it has not failed. Null: no such record. */
  retryIssueRecord(environmentId: string, id: string, now: number, audit: AuditEntry[]): Promise<RetriedRecord | null>
}

export interface IssueRecordReceived {
  id: string
  status: RecordStatus
  isNew: boolean
}

/** The row that tables.ts describes. */
interface StoredRecord extends RowOf<'issue_records'> {
  recordKind: RecordKind
  status: RecordStatus
  /** SERVICE: the service saw the failure in an event. */
  origin: RecordOrigin
  /** The record of the service that counts the same failure. This one is evidence. */
  sameAs: string | null
  /** `detectedAt`, but never later than the arrival. Issues are ordered by it. */
  seenAt: number
  /** JSON text as it was sent; so is `evidence`. */
  payload: string
}

/** The members that a client does not send. */
type Later = 'status' | 'statusAt' | 'failure' | 'fingerprint' | 'origin' | 'sameAs' | 'seenAt'

export interface NewIssueRecord extends Omit<StoredRecord, Later> {
  environmentId: string
}

export interface IssueRecordWhole extends StoredRecord {
  /** The issue that has its fingerprint now, or that of the record that counts. */
  issueId: string | null
  /** The recorded run of `runId`. */
  run: string | null
  /** Whether `eventId` is an event of that run. */
  eventIsStored: boolean
}

export type IssueRecordRow = Omit<IssueRecordWhole, 'payload' | 'evidence'>

export interface IssueRecordFilter {
  status?: RecordStatus | undefined
  recordKind?: RecordKind | undefined
}

export interface IssueRecordPage {
  limit: number
  /** Rows with a smaller id; null for the first page. */
  before: string | null
}

/** The source of the facts. */
export interface RecordInReview {
  id: string
  recordKind: RecordKind
  runId: string | null
  eventId: string | null
  detectionType: string
  policyId: string | null
  payload: string
}

export interface IssueDecision {
  recordId: string
  /** The event that a detection of a client names. If the service counted its failure, the record counts no more. */
  reports: { runId: string; eventId: string } | null
  fingerprint: string
  /** Canonical JSON. */
  facts: string
  detectionType: string
  title: string
  /** Id of the issue, if one is opened. */
  newIssueId: string
}

/** The results of the decisions. */
export interface DecidedIssues {
  opened: string[]
  regressed: string[]
}

export interface RetriedRecord {
  changed: boolean
  record: IssueRecordRow
}
