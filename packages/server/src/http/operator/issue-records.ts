import { issueRecordJson, toIssueRecord } from '../../domain/issue-view.ts'
import { refuse } from '../reply-error.ts'
import { RawJson } from '../serve-route.ts'
import { auditOf } from './audit.ts'
import { listPage, byId } from '../paging.ts'
import type { OperatorDeps } from './serve.ts'

const NO_RECORD = refuse('not_found', 'The issue record does not exist')

export function operatorIssueRecordsRoutes({ serve, storage, cursors, work, now }: OperatorDeps): void {
  serve('listIssueRecords', async ({ query, environment: { id: environmentId } }) => {
    return listPage(cursors, query, {
      of: [environmentId, 'issue records', query.status, query.recordKind],
      read: (page) => storage.listIssueRecords(environmentId, query, page),
      toItem: toIssueRecord,
      placeOf: byId,
    })
  })

  serve('readIssueRecord', async ({ params, environment }) => {
    const record = await storage.findIssueRecord(environment.id, params.recordId.toLowerCase())
    return record ? new RawJson(issueRecordJson(record)) : NO_RECORD
  })

  serve('retryIssueRecord', async ({ params, request, environment }) => {
    const at = now()
    const id = params.recordId.toLowerCase()
    const audit = auditOf(request, at, 'issue_record.retry', { kind: 'issue_record', id })
    const result = await storage.retryIssueRecord(environment.id, id, at, [audit])
    if (!result) return NO_RECORD
    const record = toIssueRecord(result.record)
    if (!result.changed) return refuse('conflict', `The record is ${record.status}`, { current: { ...record } })
    work.wake('review_issue_record')
    return record
  })
}
