import type { NewDecision } from '@tacho/contract/approvals/approval-decision.ts'
import type { OperatorApproval } from '@tacho/contract/approvals/operator-approval.ts'
import type { ApprovalRow, Decided, DecisionRow, NewGrant } from '../../storage/approvals/approvals.ts'
import type { SlackUser } from '../../storage/messages/messages.ts'
import type { ApprovalFeed } from './approval-feed.ts'
import type { Deps } from '../web/deps.ts'
import { createPoliciesOfOtherTools } from '../../domain/approvals/asking-policies.ts'
import { inputsInShort } from '../../domain/approvals/recorded-input.ts'
import { entryOf, type Acting } from '../people/audit.ts'
import { isoTime } from '../../storage/engine/times.ts'
import { toOperatorApproval } from '../../domain/approvals/approval.ts'
import type { Storage } from '../../storage/storage.ts'

/** The caller must already be admitted to the route `decideApproval`. */
interface Deciding extends Acting {
  slack?: SlackUser & { webhookId: string }
}

export type NamedDecided = Decided & { agentName: string | null }
type Decide = (by: Deciding, rows: ApprovalRow[], decision: NewDecision, grant?: NewGrant) => Promise<NamedDecided[]>
/** By approval id: the event whose input the person saw; null: they saw no input. */
type SeenInputs = ReadonlyMap<string, string | null>
type Unapprovable = 'mismatch' | 'changed'

/** Requests that this decision would approve although the input differs from the hash, or from what the person saw. */
export function createDiffering(storage: Deps['storage']) {
  return async (
    environmentId: string,
    rows: ApprovalRow[],
    { decision, confirmMismatch = false }: NewDecision,
    seen: SeenInputs = new Map(),
  ) => {
    const differing = new Map<string, Unapprovable>()
    if (decision !== 'APPROVED' || (confirmMismatch && seen.size === 0)) return differing
    const inputs = await inputsInShort(storage, environmentId, rows)
    for (const [at, row] of rows.entries()) {
      // A list reads a bounded number of bytes for all inputs, but a decision reads each input.
      const [input] = inputs[at]?.check ? [inputs[at]] : await inputsInShort(storage, environmentId, [row])
      const isMismatch = (input?.check?.result ?? 'does_not_match') === 'does_not_match'
      const isChanged = seen.has(row.id) && input?.eventId !== undefined && input.eventId !== seen.get(row.id)
      if (isChanged) differing.set(row.id, 'changed')
      else if (isMismatch && !confirmMismatch) differing.set(row.id, 'mismatch')
    }
    return differing
  }
}

type DecideDeps = Pick<Deps, 'storage' | 'now' | 'configurations'>

export function createDecide({ storage, now, configurations }: DecideDeps, feed: ApprovalFeed): Decide {
  const policiesOfOtherTools = createPoliciesOfOtherTools(configurations.read)
  return async (by, rows, { decision, reason = null, confirmMismatch = false }, grant) => {
    const { environment, actor } = by.scope
    if (environment === null) throw new Error('a decision needs an environment')
    const at = now()
    const names = await requesterNames(storage, environment.id, rows)
    const verb = decision === 'APPROVED' ? 'approve' : 'reject'
    const entry = (row: ApprovalRow, action: string, more: object = {}) => {
      const { id, toolName, inputHash, agentId, policyId, runId } = row
      const agentName = names.get(id) ?? null
      const slack = by.slack && { slack: by.slack }
      const about = { toolName, inputHash, agentId, agentName, policyId, runId, reason }
      const notes = {
        ...(confirmMismatch && { confirmMismatch }),
        ...(grant && { grant: { ...grant, expiresAt: isoTime(grant.expiresAt) } }),
        ...(row.withdrawnAt !== null && { nothingRuns: 'withdrawn' }),
      }
      const detail = { ...about, ...notes, ...slack, ...more }
      return entryOf(by, at, action, { kind: 'approval', id }, detail)
    }
    const { kind: deciderKind, id: deciderId, name: deciderName } = actor
    const via: DecisionRow['via'] = by.slack ? { kind: 'slack', webhookId: by.slack.webhookId } : null
    // Approves only the inputs that were compared with the hash and with what the person saw.
    const looked = decision === 'APPROVED' ? rows.map(({ id, inputEventId }) => [id, inputEventId] as const) : []
    // All rows have the same tool.
    const otherTools = rows[0] && (await policiesOfOtherTools(environment.id, rows[0].toolName))
    const decided = await storage.decideApprovals(
      environment.id,
      rows.map(({ id }) => id),
      {
        status: decision,
        reason,
        deciderKind,
        deciderId,
        deciderName,
        via,
        now: at,
        inputs: Object.fromEntries(looked),
        ...(grant && { grant }),
        ...(otherTools && { otherTools }),
      },
      rows.map((row) => entry(row, `approval.${verb}`)),
    )
    feed.look()
    const entries = decided.flatMap(({ outcome, approval: row }) => {
      if (row === null || outcome === 'decided' || outcome === 'first') return []
      const why = outcome === 'changed' ? { input: 'changed' } : outcome === 'refused' ? {} : { why: outcome }
      return [entry(row, `approval.${verb}.refused`, { status: row.status, ...why })]
    })
    if (entries.length > 0) await storage.appendAudit(entries)
    return decided.map((each) => ({ ...each, agentName: names.get(each.id) ?? null }))
  }
}

/** Why this person may not approve a request that needs two people. */
export const NOT_THEM = {
  same_person: 'You approved it first, and it needs two people: somebody else must approve it too',
  runs_agent:
    'It needs two people other than the one who runs the agent, and that is you: you made its API key, or the run names you as its end user',
  no_person:
    'It needs two people, and no person made this token: sign in, or use a token that you made while signed in',
} as const

type AgentNames = Pick<Storage, 'findRequesterNames'>

export async function namedApprovals(
  storage: AgentNames,
  environmentId: string,
  rows: readonly ApprovalRow[],
  now: number,
): Promise<OperatorApproval[]> {
  const names = await requesterNames(storage, environmentId, rows)
  return rows.map((row) => toOperatorApproval(row, names.get(row.id) ?? null, now))
}

/** Names of the agents that asked, by approval. */
async function requesterNames(
  storage: AgentNames,
  environmentId: string,
  rows: readonly ApprovalRow[],
): Promise<ReadonlyMap<string, string>> {
  const requests = rows.map(({ id, agentId, runId }) => ({ id, agentId, runId }))
  return new Map(requests.length === 0 ? [] : await storage.findRequesterNames(environmentId, requests))
}
