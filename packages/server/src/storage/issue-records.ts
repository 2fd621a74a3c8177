import type { RecordKind, RecordStatus } from '@tacho/contract/issue-record.ts'
import type { AuditEntry } from './audit.ts'

export interface IssueRecordStore {
  /**
   * Stores a record and the work of reviewing it. The same client and client record id are stored once: the first write
   * wins, a repeated one is told the present status.
   */
  receiveIssueRecord(record: NewIssueRecord): Promise<IssueRecordReceived>
  findIssueRecord(environmentId: string, id: string): Promise<IssueRecordWhole | null>
  /** Newest id first. */
  listIssueRecords(environmentId: string, filter: IssueRecordFilter, page: IssueRecordPage): Promise<IssueRecordRow[]>
  /** Marks those of the records that wait for a decision as being evaluated, and returns them. */
  startReview(environmentId: string, ids: string[], now: number): Promise<RecordInReview[]>
  /**
   * Decides records: joins or opens the issue of each one's fingerprint, and finishes the work. A record that is not
   * being evaluated any more is left alone, so that nothing counts twice.
   */
  decideIssueRecords(environmentId: string, decisions: IssueDecision[], now: number): Promise<DecidedIssues>
  /** Ends the review of a record for good, and its work. */
  failIssueRecord(environmentId: string, id: string, failure: string, now: number): Promise<void>
  /** Lets a failed record be reviewed again. `changed` is false for one that has not failed. Null: no such record. */
  retryIssueRecord(environmentId: string, id: string, now: number, audit: AuditEntry[]): Promise<RetriedRecord | null>
}

interface IssueRecordFields {
  id: string
  sdkInstanceId: string
  clientRecordId: string
  recordKind: RecordKind
  detectionType: string
  runId: string | null
  sessionId: string | null
  eventId: string | null
  agentId: string
  policyId: string | null
  promptVersionId: string | null
  detectedAt: number
  receivedAt: number
}

/** JSON texts as they were sent. */
interface IssueRecordTexts {
  payload: string
  evidence: string
}

export interface NewIssueRecord extends IssueRecordFields, IssueRecordTexts {
  environmentId: string
}

export interface IssueRecordReceived {
  id: string
  status: RecordStatus
  isNew: boolean
}

export interface IssueRecordRow extends IssueRecordFields {
  status: RecordStatus
  statusAt: number
  failure: string | null
  fingerprint: string | null
  /** Where its fingerprint belongs now. */
  issueId: string | null
  /** `detectedAt`, but never after it was received: what issues are ordered by. */
  seenAt: number
  /** The recorded run of `runId`. */
  run: string | null
  /** Whether `eventId` is an event of that run. */
  eventIsStored: boolean
}

export interface IssueRecordWhole extends IssueRecordRow, IssueRecordTexts {}

export interface IssueRecordFilter {
  status?: RecordStatus | undefined
  recordKind?: RecordKind | undefined
}

export interface IssueRecordPage {
  limit: number
  /** Rows with a smaller id; null for the first page. */
  before: string | null
}

/** What facts are taken from. */
export interface RecordInReview {
  id: string
  detectionType: string
  policyId: string | null
  payload: string
}

export interface IssueDecision {
  recordId: string
  fingerprint: string
  /** Canonical JSON. */
  facts: string
  detectionType: string
  title: string
  /** Id of the issue, should one be opened. */
  newIssueId: string
}

/** What decisions have brought about. */
export interface DecidedIssues {
  opened: string[]
  regressed: string[]
}

export interface RetriedRecord {
  changed: boolean
  record: IssueRecordRow
}
