import Type, { type Static } from 'typebox'
import { anyObject, cursor, nextCursor, nullableText, pageLimit, time, uuid } from '../fields.ts'
import { RecordKind, recordFields, RecordStatus } from '../issue-record.ts'
import { LIMITS } from '../limits.ts'

const fields = {
  id: uuid('Record id'),
  ...recordFields,
  detectedAt: time('When it was detected, by the client'),
  receivedAt: time('When it was stored'),
  status: RecordStatus,
  statusChangedAt: time('When it got this status'),
  failure: nullableText('Why the review failed'),
  fingerprint: nullableText('What it is grouped by; null until it is decided'),
  issueId: nullableText('The issue it belongs to now; null for a recovery of something never detected'),
  internalRunId: nullableText('The recorded run that runId names; null where none was recorded'),
  internalEventId: nullableText('The recorded event that runId and eventId name together'),
}

/** An issue record as operators see it, without what it carries. */
export const IssueRecord = Type.Object(fields, { $id: 'IssueRecord', description: 'A reported detection or recovery' })
export type IssueRecord = Static<typeof IssueRecord>

/** `payload` and `evidence` are the very JSON texts that were sent. */
export const IssueRecordDetail = Type.Object(
  { ...fields, payload: anyObject, evidence: anyObject },
  { $id: 'IssueRecordDetail', description: 'A reported detection or recovery with all it carries' },
)
export type IssueRecordDetail = Static<typeof IssueRecordDetail>

export const IssueRecordsQuery = Type.Object({
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
  status: Type.Optional(RecordStatus),
  recordKind: Type.Optional(RecordKind),
})

export const IssueRecordPage = Type.Object({ items: Type.Array(IssueRecord), nextCursor }, { $id: 'IssueRecordPage' })
export type IssueRecordPage = Static<typeof IssueRecordPage>

export const IssueRecordParams = Type.Object({
  environmentId: uuid('Environment id'),
  recordId: uuid('Record id'),
})
