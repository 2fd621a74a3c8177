import { LIMITS } from '@tacho/contract/limits.ts'
import type { DecisionOutcome, NewDecision, NewDecisions } from '@tacho/contract/operator/approval.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { toOperatorApproval } from '../../domain/approval.ts'
import { isStorableText } from '../../domain/text.ts'
import type { ApprovalRow, Decided, DecisionRow } from '../../storage/approvals.ts'
import type { ApprovalReader } from '../approval-reader.ts'
import type { Deps } from '../deps.ts'
import { refuse, type Refusal } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { environmentOf } from './access.ts'
import { auditOf } from './audit.ts'
import { agentNames } from './named-approvals.ts'
import { checkTexts } from '../field.ts'

interface Chosen {
  rows: ApprovalRow[]
  unknown: string[]
  more: boolean
}

export function approvalDecisionsRoutes(app: FastifyInstance, deps: Deps, { feed }: ApprovalReader): void {
  const { storage, now } = deps
  const options = { ...deps, refused: auditRefused }

  serveRoute(app, OPERATOR_ROUTES.decideApproval, options, async ({ params, body, request }) => {
    checkTexts({ reason: body.reason })
    const id = params.approvalId.toLowerCase()
    const row = await storage.findApproval(environmentOf(request).id, id)
    if (!row) return refuse('not_found', 'The approval does not exist')
    const [decided] = await decide(request, [row], body)
    if (!decided?.approval) return refuse('not_found', 'The approval does not exist')
    const approval = toOperatorApproval(decided.approval, decided.agentName)
    if (decided.outcome === 'decided') return approval
    const reason =
      approval.importedAt === null ? `is already ${approval.status}` : 'was imported: no client waits for it'
    return refuse('conflict', `The approval ${reason}`, { current: { ...approval } })
  })

  serveRoute(app, OPERATOR_ROUTES.decideApprovals, options, async ({ body, request }) => {
    checkTexts({ reason: body.reason })
    const chosen = await choose(environmentOf(request).id, body)
    const decided = await decide(request, chosen.rows, body)
    const unknown = chosen.unknown.map((id): DecisionOutcome => ({ id, outcome: 'not_found', approval: null }))
    return { items: [...decided.map(toOutcome), ...unknown], more: chosen.more }
  })

  /** Decides the pending approvals. Each decision and each refusal gets its own audit entry. */
  async function decide(request: FastifyRequest, rows: ApprovalRow[], body: NewDecision): Promise<NamedDecided[]> {
    const at = now()
    const names = await agentNames(storage, environmentOf(request).id, rows)
    const verb = body.decision === 'APPROVED' ? 'approve' : 'reject'
    const entry = (row: ApprovalRow, action: string, more: object = {}) => {
      const { id, toolName, inputHash, agentId, policyId, runId } = row
      const agentName = names.get(agentId ?? '') ?? null
      const detail = { toolName, inputHash, agentId, agentName, policyId, runId, reason: body.reason ?? null, ...more }
      return auditOf(request, at, action, { kind: 'approval', id }, detail)
    }
    const decided = await storage.decideApprovals(
      environmentOf(request).id,
      rows.map(({ id }) => id),
      decisionOf(request, body, at),
      rows.map((row) => entry(row, `approval.${verb}`)),
    )
    feed.look()
    const refused = decided.flatMap(({ outcome, approval }) => (outcome === 'refused' ? [approval] : []))
    if (refused.length > 0) {
      const entries = refused.map((row) => entry(row, `approval.${verb}.refused`, { status: row.status }))
      await storage.appendAudit(entries)
    }
    return decided.map((each) => ({ ...each, agentName: names.get(each.approval?.agentId ?? '') ?? null }))
  }

  /** Logs invalid attempts, such as deciding in another person's name, without the body's values. */
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

  async function chooseByIds(environmentId: string, given: string[]): Promise<Chosen> {
    const ids = [...new Set(given.map((id) => id.toLowerCase()))]
    const found = await storage.findApprovals(environmentId, ids)
    if (new Set(found.map(({ toolName, inputHash }) => `${inputHash} ${toolName}`)).size > 1) {
      throw refuse('conflict', 'The approvals are for different tools or inputs: send one request per tool and input')
    }
    const byId = new Map(found.map((row) => [row.id, row]))
    const unknown = ids.filter((id) => !byId.has(id))
    return { rows: ids.flatMap((id) => byId.get(id) ?? []), unknown, more: false }
  }

  async function chooseByTool(environmentId: string, toolName: string, inputHash: string): Promise<Chosen> {
    if (!isStorableText(toolName) || !isStorableText(inputHash)) return { rows: [], unknown: [], more: false }
    const filter = { status: 'PENDING' as const, toolName, inputHash: inputHash.toLowerCase() }
    const page = { limit: LIMITS.decisionsMax, after: null }
    return { unknown: [], ...(await storage.listApprovals(environmentId, filter, page)) }
  }
}

/** The decider is always the authenticated caller, never a name in the request. */
function decisionOf({ operator }: FastifyRequest, { decision, reason }: NewDecision, now: number): DecisionRow {
  if (!operator) throw new Error('the route is not behind the access hook')
  const { kind, id, name } = operator.actor
  return { status: decision, reason: reason ?? null, deciderKind: kind, deciderId: id, deciderName: name, now }
}

type NamedDecided = Decided & { agentName: string | null }

function toOutcome({ id, outcome, approval, agentName }: NamedDecided): DecisionOutcome {
  return { id, outcome, approval: approval && toOperatorApproval(approval, agentName) }
}
