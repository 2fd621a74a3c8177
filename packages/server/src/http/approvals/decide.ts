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

/** `mismatch` and `changed`: the input differs from the hash, or from what the person saw. */
type DecidedAt = Decided | { id: string; outcome: 'mismatch' | 'changed'; approval: ApprovalRow }
export type NamedDecided = DecidedAt & { agentName: string | null }
/** By approval id: the event whose input the person saw; null: they saw no input. */
type SeenInputs = ReadonlyMap<string, string | null>
type Decide = (
  by: Deciding,
  rows: ApprovalRow[],
  decision: NewDecision,
  seen: SeenInputs,
  grant?: NewGrant,
) => Promise<NamedDecided[]>

/** Requests that this decision would approve although the input differs from the hash, or from what the person saw. */
function createDiffering(storage: Deps['storage']) {
  return async (
    environmentId: string,
    rows: ApprovalRow[],
    { decision, confirmMismatch = false }: NewDecision,
    seen: SeenInputs,
  ) => {
    const differing = new Map<string, 'mismatch' | 'changed'>()
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

export function createDecide(deps: DecideDeps, feed: ApprovalFeed): Decide {
  const decideOnce = createDecideOnce(deps, feed)
  return async (by, rows, decision, seen, grant) => {
    const decided = await decideOnce(by, rows, decision, seen, grant, true)
    // An input was recorded after the comparison. Unless the person named what they saw, compare the new input.
    const unseen = decided.flatMap(({ id, outcome }) => (outcome === 'changed' && !seen.has(id) ? [id] : []))
    if (unseen.length === 0) return decided
    const reread = await deps.storage.findApprovals(environmentOf(by).id, unseen)
    const again = new Map((await decideOnce(by, reread, decision, seen, grant)).map((each) => [each.id, each]))
    return decided.map((each) => again.get(each.id) ?? each)
  }
}

function environmentOf({ scope: { environment } }: Deciding) {
  if (environment === null) throw new Error('a decision needs an environment')
  return environment
}

/** `mayRepeat`: the caller repeats the comparison for a changed input, so do not log a refusal yet. */
type DecideOnce = (...decideArguments: [...Parameters<Decide>, mayRepeat?: boolean]) => ReturnType<Decide>

function createDecideOnce({ storage, now, configurations }: DecideDeps, feed: ApprovalFeed): DecideOnce {
  const policiesOfOtherTools = createPoliciesOfOtherTools(configurations.read)
  const findDiffering = createDiffering(storage)
  return async (by, chosen, body, seen, grant, mayRepeat = false) => {
    const { decision, reason = null, confirmMismatch = false } = body
    const environment = environmentOf(by)
    const differing = await findDiffering(environment.id, chosen, body, seen)
    const rows = chosen.filter(({ id }) => !differing.has(id))
    const at = now()
    const names = await requesterNames(storage, environment.id, chosen)
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
    const { kind: deciderKind, id: deciderId, name: deciderName } = by.scope.actor
    const via: DecisionRow['via'] = by.slack ? { kind: 'slack', webhookId: by.slack.webhookId } : null
    // Approves only the inputs that were compared with the hash and with what the person saw.
    const looked = decision === 'APPROVED' ? rows.map(({ id, inputEventId }) => [id, inputEventId] as const) : []
    // All rows have the same tool.
    const otherTools = rows[0] && (await policiesOfOtherTools(environment.id, rows[0].toolName))
    const ids = rows.map(({ id }) => id)
    const decisionRow: DecisionRow = {
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
    }
    const audit = rows.map((row) => entry(row, `approval.${verb}`))
    const decided = ids.length === 0 ? [] : await storage.decideApprovals(environment.id, ids, decisionRow, audit)
    feed.look()
    const entries = decided.flatMap(({ id, outcome, approval: row }) => {
      if (row === null || outcome === 'decided' || outcome === 'first') return []
      if (mayRepeat && outcome === 'changed' && !seen.has(id)) return []
      const why = outcome === 'changed' ? { input: 'changed' } : outcome === 'refused' ? {} : { why: outcome }
      return [entry(row, `approval.${verb}.refused`, { status: row.status, ...why })]
    })
    if (entries.length > 0) await storage.appendAudit(entries)
    const undecided = chosen.flatMap((approval) => {
      const outcome = differing.get(approval.id)
      return outcome === undefined ? [] : [{ id: approval.id, outcome, approval }]
    })
    return [...decided, ...undecided].map((each) => ({ ...each, agentName: names.get(each.id) ?? null }))
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
