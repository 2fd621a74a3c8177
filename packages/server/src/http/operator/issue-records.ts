import { LIMITS } from '@tacho/contract/limits.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance } from 'fastify'
import { issueRecordJson, toIssueRecord } from '../../domain/issue-view.ts'
import type { Deps } from '../deps.ts'
import { pageFrom, startOf } from '../paging.ts'
import { isRefusal, refuse } from '../reply-error.ts'
import { RawJson, serveRoute } from '../serve-route.ts'
import { environmentOf } from './access.ts'
import { auditOf } from './audit.ts'

const NO_RECORD = refuse('not_found', 'The issue record does not exist')

export function operatorIssueRecordsRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors, work, now } = deps

  serveRoute(app, OPERATOR_ROUTES.listIssueRecords, deps, async ({ query, request }) => {
    const environmentId = environmentOf(request).id
    const { limit = LIMITS.operatorPageDefault, cursor, status, recordKind } = query
    const walk = [environmentId, 'issue records', status, recordKind]
    const start = startOf<{ id: string }>(cursors, walk, cursor)
    if (isRefusal(start)) return start
    const from = { limit, before: start.after?.id ?? null }
    const page = await storage.listIssueRecords(environmentId, { status, recordKind }, from)
    return pageFrom(page, toIssueRecord, ({ id }) => cursors.write(walk, { id }))
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
