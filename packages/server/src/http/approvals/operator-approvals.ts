import { APPROVAL_FILTERS } from '@tacho/contract/approvals/approval-filters.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { GRANT_FAULTS, type ApprovalRow } from '../../storage/approvals/approvals.ts'
import type { ApprovalCard, Deciders, AskingPolicy, MayGrant } from '@tacho/contract/approvals/operator-approval.ts'
import { VERSION_PATTERN } from '@tacho/contract/engine/words.ts'
import { ASKED_LATELY, toApprovalGroup, toAskedLately } from '../../domain/approvals/approval.ts'
import { parseRecorded } from '@tacho/contract/record/json-text.ts'
import { callGrounds } from '../../domain/approvals/call-grounds.ts'
import { askingTexts, callSentence } from '../../domain/approvals/call-sentence.ts'
import { inputPreview, inputsInShort } from '../../domain/approvals/recorded-input.ts'
import { HOUR_MS, isoTime } from '../../storage/engine/times.ts'
import { countBlocked } from '../../domain/approvals/asking-policies.ts'
import { isStorableText } from '../../domain/web/text.ts'
import type { RunRow } from '../../storage/runs/runs.ts'
import type { Storage } from '../../storage/storage.ts'
import type { ApprovalReader } from './approval-reader.ts'
import { NO_APPROVAL } from './approvals.ts'
import { foundOr } from '../web/reply-error.ts'
import { namedApprovals } from './decide.ts'
import { storedFilter } from '../web/field.ts'
import { readPage, NOTHING } from '../web/paging.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'
import { toPolicyVersion } from '../../domain/policies/policy.ts'
import type { EnvironmentRow } from '../../storage/tenants/tenants.ts'

const GROUPED_REQUESTS = 10_000
const UNANSWERED_HOURS = 168

export function operatorApprovalsRoutes({ serve, storage, now }: OperatorDeps, { current }: ApprovalReader): void {
  serve('listApprovals', async ({ query, environment, paging }) => {
    const filter = storedFilter(APPROVAL_FILTERS, query)
    if (filter === null) return NOTHING
    // Only pending requests can be withdrawn.
    const { withdrawn } = filter
    const status = filter.status ?? (withdrawn && 'PENDING')
    if (status !== 'PENDING' && withdrawn === 'only') return NOTHING
    if (status === 'PENDING') filter.status = status
    else delete filter.withdrawn
    if (filter.inputHash !== undefined) filter.inputHash = filter.inputHash.toLowerCase()
    const { rows, nextCursor } = await readPage(
      paging,
      (page) => current.read(environment.id, () => storage.listApprovals(environment.id, filter, page)),
      (row: ApprovalRow) => ({ time: status === 'PENDING' ? row.expiresAt : row.createdAt, id: row.id }),
    )
    return { items: await toCards(environment, rows), nextCursor }
  })

  serve('listApprovalGroups', async ({ environment }) => {
    const most = LIMITS.operatorPageMax
    const bounds = { requests: GROUPED_REQUESTS, groups: most + 1 }
    const groups = await storage.groupApprovals(environment.id, now(), bounds)
    const requests = groups.reduce((sum, group) => sum + group.requests, 0)
    return {
      items: groups.slice(0, most).map(toApprovalGroup),
      more: groups.length > most || requests === GROUPED_REQUESTS,
    }
  })

  serve('readApproval', async ({ params, environment }) => {
    const row = foundOr(await current.find(environment.id, params.approvalId), NO_APPROVAL)
    const [card] = await toCards(environment, [row])
    if (!card) return NO_APPROVAL
    const preview = await inputPreview(storage, row)
    const [grounds, deciders, askingPolicy, mayGrant] = await Promise.all([
      preview === null || preview.isTruncated
        ? null
        : callGrounds(storage, row, { ...preview, input: parseRecorded(preview.json) }),
      decidersOf(row, environment.workspaceId),
      findAskingPolicy(storage, environment, row),
      mayGrantOf(row),
    ])
    // The list may have left the check out.
    const inputCheck = preview?.check ?? card.inputCheck
    return {
      ...card,
      inputCheck,
      deciders,
      inputPreview: preview,
      grounds,
      policyVersion: row.policyVersion,
      askingPolicy,
      mayGrant,
    }
  })

  serve('countUnansweredRequests', async ({ query, environment }) => {
    const { hours = UNANSWERED_HOURS, policyId = null } = query
    const since = now() - hours * HOUR_MS
    const bounds = { since, most: LIMITS.unansweredRequests, policies: LIMITS.unansweredPolicies }
    const isKnown = policyId === null || isStorableText(policyId)
    const { rows, capped } = isKnown
      ? await storage.countUnanswered(environment.id, policyId, bounds)
      : { rows: [], capped: false }
    const items = rows.map((row) => ({ ...row, lastExpiredAt: isoTime(row.lastExpiredAt) }))
    return { items, since: isoTime(since), capped }
  })

  serve('listAskingPolicies', async ({ query, environment }) => {
    const { hours = UNANSWERED_HOURS, policyId = null } = query
    const since = now() - hours * HOUR_MS
    const bounds = { since, most: LIMITS.unansweredRequests, policies: LIMITS.unansweredPolicies }
    const isKnown = policyId === null || isStorableText(policyId)
    const asked = isKnown ? await storage.countAsked(environment.id, policyId, bounds) : { items: [], capped: false }
    const time = { from: since, to: now() }
    const blocks = policyId !== null && isKnown ? await countBlocked(storage, environment.id, policyId, time) : null
    return { ...asked, since: isoTime(since), blocks }
  })

  /** Null if the approval was decided or imported: an imported one cannot be decided. */
  async function decidersOf(row: ApprovalRow, workspaceId: string): Promise<Deciders | null> {
    if (row.status !== 'PENDING' || row.importedAt !== null) return null
    const [{ rows, more }, tokens, excluded] = await Promise.all([
      storage.listDeciders(workspaceId, LIMITS.decidersMax),
      storage.countDecidingTokens(workspaceId, now()),
      storage.listExcludedPeople(row),
    ])
    // Shows email addresses, because people choose their own names.
    const people = rows.filter(({ id }) => !excluded.includes(id)).map(({ id, email }) => ({ id, name: email }))
    return { people, more, tokens }
  }

  /**
   * What a person may allow beside this call. Null: no operator can decide the request. A condition needs an input with
   * the approved hash; a mismatch allows nothing else.
   */
  async function mayGrantOf(row: ApprovalRow): Promise<MayGrant | null> {
    if (row.status !== 'PENDING') return null
    const [ofRun, ofAgent] = await Promise.all([
      storage.findGrantFault(row, 'tool'),
      storage.findGrantFault(row, 'condition'),
    ])
    const scopes: MayGrant['scopes'] = ofRun === null ? ['input', 'tool'] : []
    if (ofAgent === null) scopes.push('condition')
    const fault = ofRun ?? ofAgent
    return { scopes, why: scopes.length > 0 || fault === null ? null : GRANT_FAULTS[fault] }
  }

  async function toCards(environment: EnvironmentRow, rows: ApprovalRow[]): Promise<ApprovalCard[]> {
    const { id: environmentId, workspaceId } = environment
    const keyOf = ({ agentId, clientId }: ApprovalRow) => JSON.stringify(agentId === null ? { clientId } : { agentId })
    const requesters = new Map(rows.map((row) => [keyOf(row), { agentId: row.agentId, clientId: row.clientId }]))
    const since = now() - ASKED_LATELY.windowMs
    const counts = await storage.countRequests(environmentId, [...requesters.values()], since, ASKED_LATELY.most)
    const countOf = new Map([...requesters.keys()].map((key, at) => [key, counts[at] ?? 0]))
    const [approvals, inputs, ranBefore, asking] = await Promise.all([
      namedApprovals(storage, environmentId, rows, now()),
      inputsInShort(storage, environmentId, rows),
      storage.findRanBefore(environmentId, rows),
      askingTexts(storage, workspaceId, rows),
    ])
    return approvals.map((approval, at) => {
      const row = rows[at]
      const askedLately = toAskedLately((row && countOf.get(keyOf(row))) ?? 0)
      const { text: inputInShort = null, check: inputCheck = null, decision = null } = inputs[at] ?? {}
      const sentence = callSentence(approval.toolName, decision, asking[at] ?? null)
      const ran = ranBefore[at] ?? null
      const before = { ranBefore: ran && { ...ran, at: isoTime(ran.at) } }
      return { ...approval, sentence, askedLately, inputInShort, inputCheck, ...before }
    })
  }
}

export async function runOfApproval(storage: Pick<Storage, 'findRun'>, row: ApprovalRow): Promise<RunRow | null> {
  const run = row.runId === null ? null : await storage.findRun(row.environmentId, row.runId)
  // The approval names an external id, so ignore a run whose internal id matches it.
  return run?.runId === row.runId ? run : null
}

const VERSION = new RegExp(VERSION_PATTERN)

/** Null: the request names no policy, or only unknown ones. */
async function findAskingPolicy(
  storage: Pick<Storage, 'findPolicy' | 'findPolicyVersion' | 'findVersionsInForce'>,
  { id: environmentId, workspaceId }: EnvironmentRow,
  { policyId, policyVersion, createdAt }: ApprovalRow,
): Promise<AskingPolicy | null> {
  if (policyId === null) return null
  const [policy, { atThatTime, now }] = await Promise.all([
    storage.findPolicy(workspaceId, policyId),
    storage.findVersionsInForce(environmentId, 'policy', policyId, createdAt),
  ])
  const isNamed = policyVersion !== null && VERSION.test(policyVersion)
  const number = isNamed ? Number(policyVersion) : atThatTime
  if (policy === null || number === null) return null
  const version = await storage.findPolicyVersion(workspaceId, policyId, number)
  if (version === null) return null
  const drafted = policy.newest.number > number ? 'drafted' : null
  return {
    version: toPolicyVersion(version),
    basis: isNamed ? 'client' : 'in_force',
    newer: now !== null && now > number ? 'in_force' : drafted,
    inForce: now === null ? null : String(now),
    newest: String(policy.newest.number),
  }
}
