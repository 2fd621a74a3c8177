/**
 * Policies that require two people. The request and the recorded decision name policies. Of each, the service checks
 * the version in force and the version that the client names; the strictest counts. A request names only one policy:
 * until the decision is recorded, each policy in force that requires two people and can match the tool counts too.
 *
 *   PENDING --approved by a person--> PENDING, with a first approval --by another person--> APPROVED
 *      ^  `--rejected by anybody--> REJECTED        |
 *      `---- the first person may no longer decide, runs the agent, or saw another input: the next one is the first ----'
 *
 * A person is an account. A token counts as the person who made it, also through other tokens; a token that no person
 * made counts as no person. The people who run the agent are the maker of its API key, or of a key before or after it
 * by rotation, and the end user of the run, or of its session if the run names none.
 */
import { includesRole, VERSION_PATTERN } from '@tacho/contract/engine/words.ts'
import {
  firstApprovalOf,
  type ApprovalRow,
  type DecisionRow,
  type FirstApproval,
  type OtherTools,
} from '../../approvals/approvals.ts'
import { read, type Sql } from '../engine/sql.ts'
import { takeSum, withSum } from '../engine/row-sums.ts'
import { allIn } from '../engine/rows.ts'
import { findOperator } from '../people/operators.ts'
import { OF_RUN_ID } from '../runs/runs.ts'
import { findEnvironment } from '../tenants/workspaces.ts'

export const twoPeopleActs = read({ listExcludedPeople })

const VERSION = new RegExp(VERSION_PATTERN)
/** Runs of a session that are searched for end users. */
const SESSION_RUNS = 100

export type AskedUnder = Pick<ApprovalRow, 'policyId' | 'policyVersion' | 'policyVersions'>

interface VersionRule {
  policyId: string
  number: number
  action: string
  severity: string
  approvers: number | null
  grants: string | null
  isInForce?: true
  rowSum?: number | null
}

/**
 * Versions of the policies that asked, if the service knows them: those in force, or last in force, and the named ones.
 */
export async function rulesOf(
  sql: Sql,
  environmentId: string,
  asked: AskedUnder,
  otherTools?: OtherTools,
): Promise<VersionRule[]> {
  const named = namedPolicies(asked)
  if (named.size === 0) return []
  const workspaceId = (await findEnvironment(sql, environmentId))?.workspaceId ?? ''
  const select = `SELECT ${withSum('policy_versions', 'v.')} FROM policy_versions v`
  const ids = [...named.keys()]
  const mayHaveAsked = asked.policyVersions === null && otherTools !== undefined
  const deployed = await allIn<VersionRule>(
    sql,
    `${select} JOIN deployments d ON d.environment_id = :env AND d.kind = 'policy' AND d.item_id = v.policy_id
      AND d.version = v.number
      WHERE v.workspace_id = :workspaceId AND (v.policy_id IN (:ids)${mayHaveAsked ? ' OR v.approvers = 2' : ''})`,
    { env: environmentId, workspaceId, ids },
  )
  const isOfTool = ({ policyId, number }: VersionRule) => !otherTools?.includes(`${policyId} ${number}`)
  const inForce = deployed.filter((rule) => named.has(rule.policyId) || isOfTool(rule))
  const others: VersionRule[] = []
  for (const [policyId, version] of named) {
    const current = inForce.find((rule) => rule.policyId === policyId)?.number ?? null
    const lately = current ?? (await lastInForce(sql, environmentId, policyId))
    const numbers = new Set([lately, version].filter((number) => number !== null && number !== current))
    for (const number of numbers) {
      const text = `${select} WHERE v.workspace_id = :workspaceId AND v.policy_id = :policyId AND v.number = :number`
      const rule = await sql.get<VersionRule>(text, { workspaceId, policyId, number })
      if (rule !== null) others.push(rule)
    }
  }
  const known = [...inForce.map((rule) => ({ ...rule, isInForce: true as const })), ...others]
  // If a version is damaged, its requirement is unknown, so the strictest rule applies.
  const strictest = { approvers: 2, grants: 'never' }
  return known.map((rule) => (takeSum(sql, 'policy_versions', rule, environmentId) ? rule : { ...rule, ...strictest }))
}

/** Policies by id, with the version number that the client names; null: it names none. */
function namedPolicies({ policyId, policyVersion, policyVersions }: AskedUnder): Map<string, number | null> {
  const versions = JSON.parse(policyVersions ?? '{}') as Record<string, string>
  const entries = Object.entries(versions)
  if (policyId !== null) entries.push([policyId, policyVersion ?? versions[policyId] ?? ''])
  return new Map(entries.map(([id, version]) => [id, VERSION.test(version) ? Number(version) : null]))
}

async function lastInForce(sql: Sql, environmentId: string, id: string): Promise<number | null> {
  const text = `SELECT from_version AS number FROM deployment_changes
    WHERE environment_id = :env AND kind = 'policy' AND item_id = :id ORDER BY publication DESC LIMIT 1`
  return (await sql.get<{ number: number | null }>(text, { env: environmentId, id }))?.number ?? null
}

/** Number of approvers that the request needs. Null: one. */
export async function approversNeeded(
  sql: Sql,
  environmentId: string,
  asked: AskedUnder,
  otherTools?: OtherTools,
): Promise<number | null> {
  const rules = await rulesOf(sql, environmentId, asked, otherTools)
  return rules.some(({ approvers }) => approvers === 2) ? 2 : null
}

/**
 * Recounts the approvers after the client reported which policies asked. A policy that only might have asked no longer counts.
 * But if the client does not name the version of the policy that asked, or a person approved already, the former number stays.
 */
export async function approversOnceKnown(sql: Sql, row: ApprovalRow): Promise<number | null> {
  const needed = await approversNeeded(sql, row.environmentId, row)
  const { policyId, firstApproval, approvers } = row
  const isNamed = policyId !== null && typeof namedPolicies(row).get(policyId) === 'number'
  return needed ?? (isNamed && firstApproval === null ? null : approvers)
}

type Decider = Pick<DecisionRow, 'deciderKind' | 'deciderId'>

/** The account of the decider. Null: a token that no person made. */
export async function personOf(sql: Sql, { deciderKind, deciderId: id }: Decider): Promise<string | null> {
  if (deciderKind === 'operator') return id
  const text = `WITH RECURSIVE maker (kind, id, depth) AS (
      SELECT creator_kind, creator_id, 1 FROM operator_tokens WHERE id = :id
      UNION ALL SELECT t.creator_kind, t.creator_id, maker.depth + 1 FROM maker
        JOIN operator_tokens t ON maker.kind = 'token' AND t.id = maker.id WHERE maker.depth < 100)
    SELECT id FROM maker WHERE kind = 'operator' LIMIT 1`
  return (await sql.get<{ id: string }>(text, { id }))?.id ?? null
}

/** People who run the agent that asked. */
async function runnersOf(sql: Sql, { environmentId: env, keyFamily, runId }: ApprovalRow): Promise<Set<string>> {
  const keys = `SELECT DISTINCT creator_kind AS "deciderKind", creator_id AS "deciderId" FROM api_keys
    WHERE environment_id = :env AND (id = :family OR family = :family) AND creator_id IS NOT NULL`
  const makers = keyFamily === null ? [] : await sql.all<Decider>(keys, { env, family: keyFamily })
  const people = await Promise.all(makers.map((maker) => personOf(sql, maker)))
  const account = 'SELECT id FROM operators WHERE id = :user OR email = :email'
  const accounts = await Promise.all(
    (await usersOf(sql, env, runId)).map((user) =>
      sql.all<{ id: string }>(account, { user, email: user.toLowerCase() }),
    ),
  )
  return new Set([...people, ...accounts.flat().map(({ id }) => id)].filter((id) => id !== null))
}

/** End users of a run. One that names none, such as a run inside another, has those of the first runs of its session. */
async function usersOf(sql: Sql, env: string, runId: string | null): Promise<string[]> {
  const ofRun = `SELECT user_id AS "userId", session_key AS "sessionKey" FROM runs WHERE environment_id = :env AND ${OF_RUN_ID}`
  const run =
    runId === null
      ? null
      : await sql.get<{ userId: string | null; sessionKey: string | null }>(ofRun, { env, run: runId })
  if (!run || run.userId !== null || run.sessionKey === null) return run?.userId ? [run.userId] : []
  const ofSession = `SELECT DISTINCT user_id AS "userId" FROM (SELECT user_id FROM runs
      WHERE environment_id = :env AND session_key = :sessionKey ORDER BY started_at, id LIMIT ${SESSION_RUNS}) r
    WHERE user_id IS NOT NULL`
  return (await sql.all<{ userId: string }>(ofSession, { env, sessionKey: run.sessionKey })).map(({ userId }) => userId)
}

export type SecondRule = 'decides' | 'first' | 'same_person' | 'runs_agent' | 'no_person'

/** The effect of an approval by this person on a request that needs two. */
export async function ruleOfTwo(sql: Sql, row: ApprovalRow, decision: DecisionRow): Promise<SecondRule> {
  const person = await personOf(sql, decision)
  // A token outlives the account and the role of the person who made it.
  if (person === null || !(await mayDecide(sql, row.environmentId, person))) return 'no_person'
  const runners = await runnersOf(sql, row)
  if (runners.has(person)) return 'runs_agent'
  const first = firstApprovalOf(row)
  // Only after the first approval may it become known that this person runs the agent.
  if (first === null || runners.has(first.person)) return 'first'
  if (first.inputEventId !== row.inputEventId || !(await mayStillDecide(sql, row, first))) return 'first'
  return first.person === person ? 'same_person' : 'decides'
}

type Past = Pick<FirstApproval, 'kind' | 'id' | 'person'>

async function mayStillDecide(sql: Sql, { environmentId }: ApprovalRow, { kind, id, person }: Past): Promise<boolean> {
  return (await mayDecide(sql, environmentId, person)) && (kind === 'operator' || (await isInUse(sql, id)))
}

async function mayDecide(sql: Sql, environmentId: string, person: string): Promise<boolean> {
  const workspace = (await findEnvironment(sql, environmentId))?.workspaceId ?? null
  for (const scope of workspace === null ? [null] : [workspace, null]) {
    const member = await findOperator(sql, scope, person)
    if (member?.role && member.deactivated === 0 && includesRole(member.role, 'approver')) return true
  }
  return false
}

/** Whether the person who gave a standing approval could still give it. */
export function mayStillGrant(sql: Sql, environmentId: string, kind: string, id: string): Promise<boolean> {
  return kind === 'operator' ? mayDecide(sql, environmentId, id) : isInUse(sql, id)
}

async function isInUse(sql: Sql, tokenId: string): Promise<boolean> {
  const text = 'SELECT id FROM operator_tokens WHERE id = :id AND revoked_at IS NULL'
  return (await sql.get<object>(text, { id: tokenId })) !== null
}

/** People who may decide requests, but may not approve this one. */
async function listExcludedPeople(sql: Sql, row: ApprovalRow): Promise<string[]> {
  if (row.approvers !== 2) return []
  const first = firstApprovalOf(row)
  return [...(await runnersOf(sql, row)), ...(first === null ? [] : [first.person])]
}
