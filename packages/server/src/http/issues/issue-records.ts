import { ROUTES } from '@tacho/contract/web/routes.ts'
import { stopMessage } from '@tacho/contract/engine/words.ts'
import type { FastifyInstance } from 'fastify'
import { isFieldFault, toNewIssueRecord } from '../../domain/issues/issue.ts'
import { claimedApproval, isAsker } from '../../domain/approvals/approval.ts'
import { claimFault } from '../../storage/approvals/approvals.ts'
import { uuidv7 } from '../../storage/engine/uuid.ts'
import { familyOf, tenantOf } from '../tenants/api-key.ts'
import type { ApprovalReader } from '../approvals/approval-reader.ts'
import { NO_APPROVAL } from '../approvals/approvals.ts'
import type { Deps } from '../web/deps.ts'
import { admitWrites } from '../record/events.ts'
import { refuseField } from '../web/field.ts'
import { refuse } from '../web/reply-error.ts'
import { serveRoute } from '../web/serve-route.ts'

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
      // Checked for any type of record. An unknown id and another client's id get the same answer, and no other client
      // can claim the id.
      if (row?.id !== approvalId || !isAsker(row, by)) return NO_APPROVAL
    }
    const isClaim = approvalId !== null && record.clientRecordId.startsWith('run-')
    const received = await (isClaim ? storage.claimApproval(approvalId, record) : storage.receiveIssueRecord(record))
    if (received === null) return refuse('conflict', 'An operator erased this record, or its run, session or agent')
    if ('unclaimed' in received) {
      const { unclaimed, stop } = received
      if (stop) return refuse('conflict', `${stopMessage(stop)}: run nothing under this approval`)
      const fault = unclaimed && claimFault(unclaimed, receivedAt)
      return fault === null ? NO_APPROVAL : refuse('conflict', `The approval ${fault}: run nothing under it`)
    }
    const { id, status, isNew, evidence } = received
    if (isNew) work.wake('review_issue_record')
    // A client whose first answer was lost finds its own claim by the random value in its evidence.
    const more = approvalId !== null && !isNew ? { isSame: evidence === record.evidence && evidence !== '{}' } : {}
    return { recordId: id, status, isNew, ...more }
  })
}
