import { ROUTES } from '@tacho/contract/routes.ts'
import type { FastifyInstance } from 'fastify'
import { isFieldFault, toNewIssueRecord } from '../domain/issue-record.ts'
import { uuidv7 } from '../storage/uuid.ts'
import { tenantOf } from './api-key.ts'
import type { Deps } from './deps.ts'
import { admitWrites } from './events.ts'
import { refuseField } from './field.ts'
import { refuse } from './reply-error.ts'
import { serveRoute } from './serve-route.ts'

export function issueRecordsRoutes(app: FastifyInstance, { storage, memory, replies, work, now }: Deps): void {
  const admit = admitWrites(storage)
  serveRoute(app, ROUTES.submitIssueRecord, { memory, replies, admit }, async ({ body, request }) => {
    const { environmentId } = tenantOf(request)
    const receivedAt = now()
    const receipt = { id: uuidv7(receivedAt), environmentId, receivedAt }
    const record = toNewIssueRecord(body, request.bodyBytes?.toString() ?? '', receipt)
    if (isFieldFault(record)) return refuseField(record.field, record.message)
    const received = await storage.receiveIssueRecord(record)
    if (received === null) return refuse('conflict', 'An operator erased this record, or its run, session or agent')
    const { id, status, isNew } = received
    if (isNew) work.wake('review_issue_record')
    return { recordId: id, status, isNew }
  })
}
