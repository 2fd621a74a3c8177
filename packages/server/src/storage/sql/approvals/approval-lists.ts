import type { AskingPolicies } from '@tacho/contract/approvals/asking-policies.ts'
import {
  lookup,
  read,
  conditionsGiven,
  filterConditions,
  selectList,
  type FilterConditions,
  type Sql,
} from '../engine/sql.ts'
import type {
  ApprovalFilter,
  ApprovalGroupRow,
  ApprovalPage,
  ApprovalRevision,
  ApprovalRow,
  ChangePlace,
  GroupBounds,
  RanBeforeRow,
  Requester,
  UnansweredRow,
} from '../../approvals/approvals.ts'
import type { Page } from '../../engine/page.ts'
import { agentKeyOf, COLUMNS } from './approval-rows.ts'
import { inChunks } from '../engine/rows.ts'
import { runKeysOf } from '../issues/issues.ts'
import { textKey } from '../engine/keys.ts'

export const approvalListsActs = {
  ...lookup({ approvalRevisions }),
  ...read({
    listApprovals,
    listApprovalsOfRun,
    groupApprovals,
    countRequests,
    countUnanswered,
    countAsked,
    findRanBefore,
    listOverdueEnvironments,
    listChangedApprovals,
  }),
}

const CONDITIONS: FilterConditions<ApprovalFilter> = {
  toolName: (tool) => ['tool_key = :toolName', textKey(tool)],
  // A literal, so that the planner finds the index of pending approvals.
  status: (status) => (status === 'PENDING' ? ["status = 'PENDING'"] : ['status = :status', status]),
  inputHash: (hash) => ['input_hash = :inputHash', hash],
  agentId: (agentId) => ['agent_key = :agentId', agentKeyOf({ agentId, clientId: '' })],
  policyId: (id) => ['policy_key = :policyId', textKey(id)],
  runId: (id) => ['run_key = :runId', textKey(id)],
  session: (id, { dialect }) => [
    dialect === 'sqlite' ? 'session_id = :session' : 'md5(session_id) = md5(:session) AND session_id = :session',
    id,
  ],
  user: async (id, sql, environmentId) => ['run_key IN (:user)', await runKeysOf(sql, environmentId, id)],
  from: (time) => ['created_at >= :from', time],
  to: (time) => ['created_at < :to', time],
  withdrawn: (which) => [`withdrawn_at IS ${which === 'only' ? 'NOT ' : ''}NULL`],
}

async function listApprovals(
  sql: Sql,
  environmentId: string,
  { isClosed, ...filter }: ApprovalFilter & { isClosed?: boolean },
  { limit, after }: ApprovalPage,
): Promise<Page<ApprovalRow>> {
  const byDeadline = filter.status === 'PENDING'
  const givenFilters = await filterConditions(CONDITIONS, sql, environmentId, filter)
  const params = { ...givenFilters.params, env: environmentId, time: after?.time, id: after?.id }
  const conditions = [
    'environment_id = :env',
    ...givenFilters.conditions,
    ...(isClosed ? ["status <> 'PENDING'"] : []),
    byDeadline ? '(expires_at, id) > (:time, :id)' : '(created_at, id) < (:time, :id)',
  ]
  const order = byDeadline ? 'expires_at, id' : 'created_at DESC, id DESC'
  const text = `SELECT ${COLUMNS} FROM approvals WHERE ${conditionsGiven(conditions, params)} ORDER BY ${order}`
  return sql.page(text, params, limit)
}

function listApprovalsOfRun(sql: Sql, environmentId: string, runId: string, limit: number): Promise<Page<ApprovalRow>> {
  const text = `SELECT ${COLUMNS} FROM approvals WHERE environment_id = :env AND run_key = :runKey
    ORDER BY created_at, id`
  return sql.page(text, { env: environmentId, runKey: textKey(runId) }, limit)
}

function groupApprovals(sql: Sql, environmentId: string, now: number, { requests, groups }: GroupBounds) {
  const text = `SELECT tool_name AS "toolName", input_hash AS "inputHash", COUNT(*) AS requests,
      COUNT(DISTINCT run_key) AS runs, COUNT(DISTINCT agent_key) AS agents, COUNT(DISTINCT policy_key) AS policies,
      MIN(expires_at) AS "oldestExpiresAt", MIN(created_at) AS "oldestCreatedAt"
    FROM (SELECT tool_name, input_hash, tool_key, run_key, agent_key, policy_key, expires_at, created_at
      FROM approvals WHERE environment_id = :env AND status = 'PENDING' AND expires_at > :now AND withdrawn_at IS NULL
      ORDER BY expires_at, id LIMIT :requests) AS pending
    GROUP BY tool_key, tool_name, input_hash
    ORDER BY MIN(expires_at), MIN(created_at), tool_key, input_hash LIMIT :groups`
  return sql.all<ApprovalGroupRow>(text, { env: environmentId, now, requests, groups })
}

async function countRequests(sql: Sql, environmentId: string, requesters: Requester[], since: number, most: number) {
  const text = `SELECT asked.column1 AS "agentKey", (SELECT COUNT(*) FROM (SELECT 1 FROM approvals
      WHERE environment_id = :env AND agent_key = asked.column1 AND created_at >= :since LIMIT :most) AS lately) AS requests
    FROM (VALUES :asked) AS asked`
  const keys = requesters.map(agentKeyOf)
  const query = (chunk: string[]) => {
    const params = { env: environmentId, since, most, asked: chunk.map((key) => [key]) }
    return sql.all<{ agentKey: string; requests: number }>(text, params)
  }
  // The empty key fills the last chunk. No agent has it, so counting it costs nothing.
  const chunkRows = await inChunks(keys, query, '')
  const counts = new Map(chunkRows.map(({ agentKey, requests }) => [agentKey, requests]))
  return keys.map((key) => counts.get(key) ?? 0)
}

/** Counts expired requests among the newest `most`. */
async function countUnanswered(
  sql: Sql,
  environmentId: string,
  policyId: string | null,
  { since, most, policies }: { since: number; most: number; policies: number },
): Promise<{ rows: UnansweredRow[]; capped: boolean }> {
  const ofPolicy = policyId === null ? '' : ' AND policy_key = :policyKey'
  const text = `SELECT policy_id AS "policyId", COUNT(*) AS expired, COUNT(withdrawn_at) AS withdrawn,
      MAX(expires_at) AS "lastExpiredAt", SUM(COUNT(*)) OVER () AS counted
    FROM (SELECT policy_id, policy_key, withdrawn_at, expires_at FROM approvals
      WHERE environment_id = :env AND status = 'EXPIRED' AND created_at >= :since AND imported_at IS NULL${ofPolicy}
      ORDER BY created_at DESC, id DESC LIMIT :most) AS expired
    GROUP BY policy_key, policy_id ORDER BY COUNT(*) DESC, policy_key LIMIT :policies`
  const policyKey = policyId === null ? null : textKey(policyId)
  const params = { env: environmentId, since, most, policies, ...(policyKey !== null && { policyKey }) }
  const rows = await sql.all<UnansweredRow & { counted: number }>(text, params)
  const capped = Number(rows[0]?.counted ?? 0) >= most
  return { rows: rows.map(({ counted: _, ...row }) => row), capped }
}

type AskedRow = Pick<
  ApprovalRow,
  'policyId' | 'status' | 'grantId' | 'createdAt' | 'decidedAt' | 'inputHash' | 'reason'
>

/** Counts only the newest `most` requests. */
async function countAsked(
  sql: Sql,
  environmentId: string,
  policyId: string | null,
  { since, most, policies }: { since: number; most: number; policies: number },
): Promise<Pick<AskingPolicies, 'items' | 'capped'>> {
  const ofPolicy = policyId === null ? '' : ' AND policy_key = :policyKey'
  const text = `SELECT ${selectList('policy_id status grant_id created_at decided_at input_hash reason')} FROM approvals
    WHERE environment_id = :env AND created_at >= :since AND imported_at IS NULL${ofPolicy}
    ORDER BY created_at DESC, id DESC LIMIT :most`
  const policyKey = policyId === null ? null : textKey(policyId)
  const params = { env: environmentId, since, most, ...(policyKey !== null && { policyKey }) }
  const rows = await sql.all<AskedRow>(text, params)
  const items = [...Map.groupBy(rows, (row) => row.policyId)].map(([id, asked]) => ({
    policyId: id,
    ...answersOf(asked),
  }))
  const ordered = items.toSorted((a, b) => b.requests - a.requests)
  return { items: ordered.slice(0, policies), capped: rows.length >= most }
}

const QUICK_MS = 5_000
/** Part of the reason that clients send. */
const UNEVALUATED = 'its condition could not be evaluated'

function answersOf(asked: readonly AskedRow[]) {
  const byPeople = asked.filter(({ grantId, decidedAt }) => grantId === null && decidedAt !== null)
  const times = byPeople
    .map(({ createdAt, decidedAt }) => Math.max(0, (decidedAt ?? 0) - createdAt))
    .toSorted((a, b) => a - b)
  const at = (share: number) => times[Math.max(0, Math.ceil(share * times.length) - 1)] ?? null
  const approved = byPeople.filter(({ status }) => status === 'APPROVED')
  const decisions = Map.groupBy(byPeople, ({ inputHash }) => inputHash)
  return {
    requests: asked.length,
    approved: approved.length,
    rejected: byPeople.length - approved.length,
    expired: asked.filter(({ status }) => status === 'EXPIRED').length,
    byGrant: asked.filter(({ grantId }) => grantId !== null).length,
    quick: approved.filter(({ createdAt, decidedAt }) => (decidedAt ?? 0) - createdAt <= QUICK_MS).length,
    unevaluated: asked.filter(({ reason }) => reason?.includes(UNEVALUATED)).length,
    contradictions: [...decisions.values()].filter((same) => new Set(same.map(({ status }) => status)).size > 1).length,
    answerP50: at(0.5),
    answerP95: at(0.95),
  }
}

/** For each request, finds the previous request for the same call, if that call ran. */
async function findRanBefore(sql: Sql, environmentId: string, rows: ApprovalRow[]): Promise<(RanBeforeRow | null)[]> {
  const text = `SELECT id AS "approvalId", ran_at AS at, ran_status AS status FROM approvals
    WHERE environment_id = :env AND run_key = :runKey AND input_hash = :inputHash AND ran_at IS NOT NULL
      AND tool_call_id = :toolCallId AND tool_key = :toolKey AND id <> :id AND created_at <= :createdAt
    ORDER BY ran_at DESC LIMIT 1`
  return Promise.all(
    rows.map(async ({ id, runId, inputHash, toolCallId, toolName, createdAt }) => {
      if (runId === null || toolCallId === null) return null
      const keys = { runKey: textKey(runId), toolKey: textKey(toolName) }
      return sql.get<RanBeforeRow>(text, { env: environmentId, id, inputHash, toolCallId, createdAt, ...keys })
    }),
  )
}

async function listOverdueEnvironments(sql: Sql, now: number, limit: number): Promise<string[]> {
  const text = `SELECT environment_id AS id FROM approval_feeds WHERE next_deadline <= :now
    ORDER BY next_deadline LIMIT :limit`
  const rows = await sql.all<{ id: string }>(text, { now, limit })
  return rows.map(({ id }) => id)
}

async function approvalRevisions(sql: Sql, environmentIds: string[]): Promise<ApprovalRevision[]> {
  const text = `SELECT environment_id AS "environmentId", revision, removed_revision AS "removedRevision"
    FROM approval_feeds WHERE environment_id IN (:ids)`
  const rows = await inChunks(environmentIds, (ids) => sql.all<ApprovalRevision>(text, { ids }))
  const rowsByEnvironment = new Map(rows.map((row) => [row.environmentId, row]))
  return environmentIds.map((environmentId) => {
    return rowsByEnvironment.get(environmentId) ?? { environmentId, revision: 0, removedRevision: 0 }
  })
}

function listChangedApprovals(sql: Sql, environmentId: string, { revision, id }: ChangePlace, limit: number) {
  const text = `SELECT ${COLUMNS} FROM approvals WHERE environment_id = :env AND (revision, id) > (:revision, :id)
    ORDER BY revision, id`
  return sql.page<ApprovalRow>(text, { env: environmentId, revision, id }, limit)
}
