import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { DecisionOutcome, NewDecisions } from '@tacho/contract/approvals/approval-decision.ts'
import type { FastifyRequest } from 'fastify'
import { toOperatorApproval } from '../../domain/approvals/approval.ts'
import { type ApprovalRow, GRANT_FAULTS } from '../../storage/approvals/approvals.ts'
import type { ApprovalReader } from './approval-reader.ts'
import { foundOr, refuse, type Refusal } from '../web/reply-error.ts'
import { NO_APPROVAL } from './approvals.ts'
import { newGrantOf } from './grants.ts'
import { actingIn, auditOf } from '../people/audit.ts'
import { createDecide, NOT_THEM, type NamedDecided } from './decide.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'

const MISMATCH = refuse(
  'conflict',
  'The recorded input does not match the hash that would be approved. To approve it all the same, confirm the mismatch: confirmMismatch, or --confirm-mismatch',
)

const CHANGED = 'Nothing is decided: the recorded input is not the one that was shown. Look at it, then decide again'

interface Chosen {
  rows: ApprovalRow[]
  unknown: string[]
  more: boolean
}

export function approvalDecisionsRoutes(deps: OperatorDeps, { feed }: ApprovalReader): void {
  const { serve, storage, now } = deps
  const decide = createDecide(deps, feed)

  serve(
    'decideApproval',
    async ({ params, body, request, environment }) => {
      const row = foundOr(await storage.findApproval(environment.id, params.approvalId), NO_APPROVAL)
      const seen = new Map(body.seenInput === undefined ? [] : [[row.id, body.seenInput]])
      const grant = await newGrantOf(deps, row, body, request)
      const [decided] = await decide(actingIn(request), [row], body, seen, grant)
      if (!decided?.approval) return NO_APPROVAL
      const approval = toOperatorApproval(decided.approval, decided.agentName, now())
      const { outcome } = decided
      if (outcome === 'decided' || outcome === 'first') return approval
      if (outcome === 'mismatch') return MISMATCH
      if (outcome === 'changed') return refuse('conflict', CHANGED)
      if (decided.outcome === 'no_grant')
        return refuse('conflict', `Nothing is decided. Only this call can be allowed: ${GRANT_FAULTS[decided.fault]}`)
      if (outcome !== 'no_grant' && outcome !== 'refused')
        return refuse('conflict', NOT_THEM[outcome], { current: { ...approval } })
      const reason =
        approval.importedAt === null ? `is already ${approval.status}` : 'was imported: no client waits for it'
      return refuse('conflict', `The approval ${reason}`, { current: { ...approval } })
    },
    auditRefused,
  )

  serve(
    'decideApprovals',
    async ({ body, request, environment }) => {
      const chosen = await choose(environment.id, body)
      const seen = new Map(body.seenInputs?.map(({ id, eventId }) => [id.toLowerCase(), eventId]))
      const decided = await decide(actingIn(request), chosen.rows, body, seen)
      const unknown = chosen.unknown.map((id): DecisionOutcome => ({ id, outcome: 'not_found', approval: null }))
      return {
        items: [...decided.map((each) => toOutcome(each, now())), ...unknown],
        // If all stay pending, because inputs differ or a second person must approve, the same page would come again.
        more: chosen.more && decided.some(({ approval }) => approval?.status !== 'PENDING'),
      }
    },
    auditRefused,
  )

  /** Logs invalid attempts, such as deciding in another person's name, without values of the body. */
  async function auditRefused(request: FastifyRequest, { more: { errors = [] } }: Refusal): Promise<void> {
    const { approvalId = '' } = request.params as { approvalId?: string }
    const target = { kind: 'approval', id: approvalId }
    const fields = errors.map(({ path, message }) => `${path} ${message}`.slice(0, 200))
    await storage.appendAudit([auditOf(request, now(), 'approval.decide.refused', target, { fields })])
  }

  async function choose(environmentId: string, body: NewDecisions): Promise<Chosen> {
    const { ids, toolName, inputHash } = body
    const byTool = toolName !== undefined && inputHash !== undefined
    if (byTool === (ids !== undefined) || (ids && (toolName ?? inputHash) !== undefined)) {
      throw refuse('invalid_request', 'Send either ids, or toolName and inputHash')
    }
    return ids ? chooseByIds(environmentId, ids) : chooseByTool(environmentId, toolName ?? '', inputHash ?? '')
  }

  async function chooseByIds(environmentId: string, approvalIds: string[]): Promise<Chosen> {
    const ids = [...new Set(approvalIds.map((id) => id.toLowerCase()))]
    const chosenApprovals = await storage.findApprovals(environmentId, ids)
    if (new Set(chosenApprovals.map(({ toolName, inputHash }) => `${inputHash} ${toolName}`)).size > 1) {
      throw refuse('conflict', 'The approvals are for different tools or inputs: send one request per tool and input')
    }
    const byId = new Map(chosenApprovals.map((row) => [row.id, row]))
    const unknown = ids.filter((id) => !byId.has(id))
    return { rows: ids.flatMap((id) => byId.get(id) ?? []), unknown, more: false }
  }

  async function chooseByTool(environmentId: string, toolName: string, inputHash: string): Promise<Chosen> {
    const filter = { status: 'PENDING' as const, toolName, inputHash: inputHash.toLowerCase() }
    const page = { limit: LIMITS.decisionsMax, after: null }
    return { unknown: [], ...(await storage.listApprovals(environmentId, filter, page)) }
  }
}

function toOutcome({ id, outcome, approval, agentName }: NamedDecided, now: number): DecisionOutcome {
  // Only a decision on a single request can create a grant.
  return {
    id,
    outcome: outcome === 'no_grant' ? 'refused' : outcome,
    approval: approval && toOperatorApproval(approval, agentName, now),
  }
}
