import { issueRecordJson, toIssueRecord } from '../../domain/issues/issue-view.ts'
import { found, refuse } from '../web/reply-error.ts'
import { RawJson } from '../web/serve-route.ts'
import { listById } from '../web/paging.ts'
import type { OperatorDeps } from '../web/serve.ts'

const NO_RECORD = refuse('not_found', 'The issue record does not exist')

export function operatorIssueRecordsRoutes({ serve, storage, work }: OperatorDeps): void {
  serve('listIssueRecords', ({ query, environment: { id }, walk }) =>
    listById(walk, (page) => storage.listIssueRecords(id, query, page), toIssueRecord),
  )

  serve('readIssueRecord', async ({ params, environment }) => {
    const record = found(await storage.findIssueRecord(environment.id, params.recordId), NO_RECORD)
    return new RawJson(issueRecordJson(record))
  })

  serve('retryIssueRecord', async ({ params: { recordId: id }, environment, at, audit }) => {
    const retried = found(await storage.retryIssueRecord(environment.id, id, at, audit(id)), NO_RECORD)
    const record = toIssueRecord(retried.record)
    if (!retried.changed) return refuse('conflict', `The record is ${record.status}`, { current: { ...record } })
    work.wake('review_issue_record')
    return record
  })
}
