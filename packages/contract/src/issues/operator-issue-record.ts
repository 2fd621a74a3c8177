import Type, { type Static } from 'typebox'
import { anyObject, cursor, nextCursor, nullableText, pageLimit, time, uuid } from '../web/fields.ts'
import { RecordKind, recordFields, RecordOrigin, RecordStatus } from './issue-record.ts'
import { LIMITS } from '../engine/limits.ts'

const fields = {
  id: uuid('Record id'),
  origin: RecordOrigin,
  ...recordFields,
  detectedAt: time("When it was detected, by the client's clock"),
  receivedAt: time('When it was stored'),
  status: RecordStatus,
  statusChangedAt: time('When the status last changed'),
  failure: nullableText('Why the review failed'),
  fingerprint: nullableText('Groups the record; null until the review is finished'),
  sameAs: nullableText('The record of the service that counts the same failure; this one is not counted again'),
  issueId: nullableText('The issue it belongs to now; null for a recovery without a detection'),
  internalRunId: nullableText('The recorded run with this runId; null if there is none'),
  internalEventId: nullableText('The recorded event with this runId and eventId; null if there is none'),
}

/** An issue record for operators, without payload and evidence. */
export const IssueRecord = Type.Object(fields, {
  $id: 'IssueRecord',
  description: 'A detection or recovery: reported by a client, or a failure that the service saw',
})
export type IssueRecord = Static<typeof IssueRecord>

/** `payload` and `evidence` are the exact JSON texts that the client sent. */
export const IssueRecordDetail = Type.Object(
  { ...fields, payload: anyObject, evidence: anyObject },
  { $id: 'IssueRecordDetail', description: 'A reported detection or recovery with its payload and evidence' },
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
