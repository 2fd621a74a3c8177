import { ROUTES } from '@tacho/contract/routes.ts'
import type { FastifyInstance } from 'fastify'
import { isFieldFault, toNewIssueRecord } from '../domain/issue-record.ts'
import { claimedApproval, isAsker, claimFault } from '../domain/approval.ts'
import { uuidv7 } from '../storage/uuid.ts'
import { familyOf, tenantOf } from './api-key.ts'
import type { ApprovalReader } from './approval-reader.ts'
import { NO_APPROVAL } from './approvals.ts'
import type { Deps } from './deps.ts'
import { admitWrites } from './events.ts'
import { refuseField } from './field.ts'
import { refuse } from './reply-error.ts'
import { serveRoute } from './serve-route.ts'

const CLAIM_TYPE = 'APPROVAL_PENDING'

export function issueRecordsRoutes(
  app: FastifyInstance,
  { storage, memory, replies, work, now }: Deps,
  { current }: ApprovalReader,
): void {
  const admit = admitWrites(storage)
  serveRoute(app, ROUTES.submitIssueRecord, { memory, replies, admit }, async ({ body, request }) => {
    const { environmentId } = tenantOf(request)
    const receivedAt = now()
    const receipt = { id: uuidv7(receivedAt), environmentId, receivedAt }
    const record = toNewIssueRecord(body, request.bodyBytes?.toString() ?? '', receipt)
    if (isFieldFault(record)) return refuseField(record.field, record.message)
    const approvalId = claimedApproval(record)
    if (approvalId !== null) {
      const by = { clientId: record.sdkInstanceId, keyFamily: familyOf(request) }
      const row = await current.find(environmentId, approvalId.toLowerCase())
      const isClaim = record.clientRecordId.startsWith('run-')
      const isOfSdk = record.detectionType === CLAIM_TYPE
      // Other records must not take the id of a claim.
      if (row === null ? isOfSdk : row.id !== approvalId || !isAsker(row, by)) return NO_APPROVAL
      const fault = row && isClaim ? claimFault(row, receivedAt) : null
      if (fault !== null) return refuse('conflict', `The approval ${fault}: run nothing under it`)
    }
    const received = await storage.receiveIssueRecord(record)
    if (received === null) return refuse('conflict', 'An operator erased this record, or its run, session or agent')
    const { id, status, isNew } = received
    if (isNew) work.wake('review_issue_record')
    return { recordId: id, status, isNew }
  })
}
