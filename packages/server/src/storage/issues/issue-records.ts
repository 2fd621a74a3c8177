import type { RecordKind, RecordOrigin, RecordStatus } from '@tacho/contract/issues/issue-record.ts'
import type { ApprovalRow } from '../approvals/approvals.ts'
import type { RowOf } from '../engine/tables.ts'

export interface IssueRecordReceived {
  id: string
  status: RecordStatus
  isNew: boolean
  /** As the first of the records with this key has it. */
  evidence: string
}

/** A claim of an approval under which nothing may run. Null: it was erased. */
export interface RefusedClaim {
  unclaimed: ApprovalRow | null
}

interface StoredRecord extends RowOf<'issue_records'> {
  recordKind: RecordKind
  status: RecordStatus
  origin: RecordOrigin
  /** The service's record of the same failure, which counts. This one is evidence. */
  sameAs: string | null
  /** `detectedAt`, but never after the arrival. Orders issues. */
  seenAt: number
  payload: string
}

type NotSent = 'status' | 'statusAt' | 'failure' | 'fingerprint' | 'origin' | 'sameAs' | 'seenAt'

export interface NewIssueRecord extends Omit<StoredRecord, NotSent> {
  environmentId: string
}

export interface IssueRecordWhole extends StoredRecord {
  issueId: string | null
  run: string | null
  /** Null: its event is not stored, or it names none. */
  storedEventId: string | null
}

export type IssueRecordRow = Omit<IssueRecordWhole, 'payload' | 'evidence'>

export interface IssueRecordFilter {
  status?: RecordStatus | undefined
  recordKind?: RecordKind | undefined
}

type Reviewed = 'id' | 'recordKind' | 'runId' | 'eventId' | 'detectionType' | 'policyId' | 'payload'
export type RecordInReview = Pick<StoredRecord, Reviewed>

export interface IssueDecision {
  recordId: string
  /** The event that a client's detection names. If the service counted its failure, this record no longer counts. */
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
