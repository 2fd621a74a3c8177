import type { RecordKind, RecordOrigin, RecordStatus } from '@tacho/contract/issue-record.ts'
import type { RowOf } from './tables.ts'

export interface IssueRecordReceived {
  id: string
  status: RecordStatus
  isNew: boolean
}

interface StoredRecord extends RowOf<'issue_records'> {
  recordKind: RecordKind
  status: RecordStatus
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
  eventIsStored: boolean
}

export type IssueRecordRow = Omit<IssueRecordWhole, 'payload' | 'evidence'>

export interface IssueRecordFilter {
  status?: RecordStatus | undefined
  recordKind?: RecordKind | undefined
}

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
  facts: string
  detectionType: string
  title: string
  newIssueId: string
}

export interface DecidedIssues {
  opened: string[]
  regressed: string[]
}

export interface RetriedRecord {
  changed: boolean
  record: IssueRecordRow
}
