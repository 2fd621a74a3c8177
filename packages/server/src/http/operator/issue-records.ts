import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance } from 'fastify'
import { issueRecordJson, toIssueRecord } from '../../domain/issue-view.ts'
import type { Deps } from '../deps.ts'
import { refuse } from '../reply-error.ts'
import { RawJson, serveRoute } from '../serve-route.ts'
import { environmentOf } from './access.ts'
import { auditOf } from './audit.ts'
import { listPage, byId } from '../paging.ts'

const NO_RECORD = refuse('not_found', 'The issue record does not exist')

export function operatorIssueRecordsRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors, work, now } = deps

  serveRoute(app, OPERATOR_ROUTES.listIssueRecords, deps, async ({ query, request }) => {
    const environmentId = environmentOf(request).id
    return listPage(cursors, query, {
      of: [environmentId, 'issue records', query.status, query.recordKind],
      read: (page) => storage.listIssueRecords(environmentId, query, page),
      toItem: toIssueRecord,
      placeOf: byId,
    })
  })

  serveRoute(app, OPERATOR_ROUTES.readIssueRecord, deps, async ({ params, request }) => {
    const record = await storage.findIssueRecord(environmentOf(request).id, params.recordId.toLowerCase())
    return record ? new RawJson(issueRecordJson(record)) : NO_RECORD
  })

  serveRoute(app, OPERATOR_ROUTES.retryIssueRecord, deps, async ({ params, request }) => {
    const at = now()
    const id = params.recordId.toLowerCase()
    const audit = auditOf(request, at, 'issue_record.retry', { kind: 'issue_record', id })
    const result = await storage.retryIssueRecord(environmentOf(request).id, id, at, [audit])
    if (!result) return NO_RECORD
    const record = toIssueRecord(result.record)
    if (!result.changed) return refuse('conflict', `The record is ${record.status}`, { current: { ...record } })
    work.wake('review_issue_record')
    return record
  })
}
