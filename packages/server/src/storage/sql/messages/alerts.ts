import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Share } from '@tacho/contract/runs/statistics.ts'
import type {
  AlertCheck,
  AlertNewsRow,
  AlertPatch,
  AlertRef,
  AlertRow,
  AlertRule,
  AlertState,
  AlertWindow,
} from '../../messages/messages.ts'
import type { AuditEntry } from '../../people/operators.ts'
import type { WorkHold } from '../../engine/work.ts'
import { read, write, countOf, selectList, type Sql } from '../engine/sql.ts'
import { insertAudit } from '../people/audit.ts'
import { agentKeyOf } from '../approvals/approval-rows.ts'
import { announceAlert, queueNotices } from './announcements.ts'
import { findEnvironment, lockEnvironment, findWorkspace } from '../tenants/workspaces.ts'
import { insertRows, withJson } from '../engine/rows.ts'
import { damagedError, DELETE_IT, nameOf, rowSum, takeSum, withSum } from '../engine/row-sums.ts'
import { stalledBefore } from '../runs/runs.ts'
import { partParams, readPartHours, rowsInHours } from '../runs/part-hours.ts'
import { enqueueWork, postponeWork, removeWork, RESTARTS } from '../engine/work.ts'

export const alertsActs = {
  ...read({ listAlerts, findAlert, startAlertCheck, measureAlert }),
  ...write({ createAlert, changeAlert, testAlert, removeAlert, recordAlertCheck }),
}

const COLUMNS = `${withSum('alerts')}, ${selectList('environment_id state checked_at created_at')}`
const NANOS = 1e9
const RUNS_LOOKED_AT = 1_000

const parsed = withJson<AlertRow>('rule', 'state')

/** Replaces a damaged rule, which may not be JSON. */
const NO_RULE: AlertRule = {
  name: '',
  kind: 'no_runs',
  threshold: 0,
  agentId: null,
  windowMinutes: 60,
  holdMinutes: 5,
  period: 'month',
}

function toListed(sql: Sql, environmentId: string, row: object): AlertRow {
  if (takeSum(sql, 'alerts', row, environmentId)) return parsed(row)
  return { ...parsed({ ...row, rule: JSON.stringify(NO_RULE) }), damaged: true }
}

async function listAlerts(sql: Sql, environmentId: string): Promise<AlertRow[]> {
  const text = `SELECT ${COLUMNS} FROM alerts WHERE environment_id = :env ORDER BY id LIMIT :limit`
  const rows = await sql.all<object>(text, { env: environmentId, limit: LIMITS.alerts })
  return rows.map((row) => toListed(sql, environmentId, row))
}

async function findListed(sql: Sql, environmentId: string, id: string): Promise<AlertRow | null> {
  const text = `SELECT ${COLUMNS} FROM alerts WHERE environment_id = :env AND id = :id`
  const row = await sql.get<object>(text, { env: environmentId, id })
  return row && toListed(sql, environmentId, row)
}

/** A damaged alert can be listed and removed, but not changed. */
export async function findAlert(sql: Sql, environmentId: string, id: string): Promise<AlertRow | null> {
  const alert = await findListed(sql, environmentId, id)
  if (alert?.damaged) throw damagedError(nameOf('alerts', alert), DELETE_IT)
  return alert
}

async function createAlert(sql: Sql, alert: AlertRow, audit: AuditEntry[]): Promise<'created' | 'too_many'> {
  const { id, environmentId, createdAt } = alert
  await lockEnvironment(sql, environmentId)
  const count = 'SELECT COUNT(*) AS count FROM alerts WHERE environment_id = :env'
  if ((await countOf(sql, count, { env: environmentId })) >= LIMITS.alerts) return 'too_many'
  await insertRows(sql, 'alerts', [alert])
  await enqueueWork(sql, [{ kind: 'check_alert', environmentId, subjectId: id, dueAt: createdAt }])
  await insertAudit(sql, audit)
  return 'created'
}

async function changeAlert(
  sql: Sql,
  { environmentId, id, at }: AlertRef,
  change: AlertPatch,
  fresh: AlertState,
  audit: AuditEntry[],
): Promise<AlertRow | null> {
  if ((await findAlert(sql, environmentId, id)) === null) return null
  // Comes first, because it locks the work: a running check of the old rule can then no longer store its result.
  await enqueueWork(sql, [{ kind: 'check_alert', environmentId, subjectId: id, dueAt: at }], RESTARTS)
  const alert = await findAlert(sql, environmentId, id)
  if (alert === null) return null
  const rule = { ...alert.rule, ...change }
  const isOtherBudget = rule.kind === 'budget' && BUDGETS.some((name) => rule[name] !== alert.rule[name])
  const state = isOtherBudget ? fresh : alert.state
  const text = `UPDATE alerts SET rule = :rule, row_sum = :sum, state = :state
    WHERE environment_id = :env AND id = :id`
  const changed = { id, rule: JSON.stringify(rule) }
  const sum = rowSum('alerts', changed)
  await sql.run(text, { ...changed, sum, state: JSON.stringify(state), env: environmentId })
  await insertAudit(sql, audit)
  return { ...alert, rule, state }
}

const BUDGETS = ['threshold', 'agentId', 'period'] as const

async function testAlert(sql: Sql, { environmentId, at }: AlertRef, news: AlertNewsRow, audit: AuditEntry[]) {
  await insertAudit(sql, audit)
  return announceAlert(sql, environmentId, news, at)
}

async function removeAlert(sql: Sql, environmentId: string, id: string, audit: AuditEntry[]): Promise<AlertRow | null> {
  const alert = await findListed(sql, environmentId, id)
  if (alert === null) return null
  await removeWork(sql, { kind: 'check_alert', environmentId, subjectId: id })
  await sql.run('DELETE FROM alerts WHERE environment_id = :env AND id = :id', { env: environmentId, id })
  await insertAudit(sql, audit)
  return alert
}

async function startAlertCheck(sql: Sql, environmentId: string, id: string) {
  const alert = await findAlert(sql, environmentId, id)
  const environment = alert && (await findEnvironment(sql, environmentId))
  const workspace = environment && (await findWorkspace(sql, environment.workspaceId))
  if (!alert || !environment || !workspace) return null
  const isArchived = environment.archivedAt !== null || workspace.archivedAt !== null
  return { alert, workspaceId: workspace.id, isArchived }
}

/**
 * Reads only rollups and indexes, so estimated costs are missing. For error_rate, counts failed runs among the ended
 * ones.
 */
async function measureAlert(
  sql: Sql,
  environmentId: string,
  { kind, agentId, leastRuns = 1 }: AlertRule,
  { since, from, to, now }: AlertWindow,
): Promise<number | Share | null> {
  const ofAgent = agentId === null ? '' : ' AND agent_id = :agentId'
  const of = { env: environmentId, ...(agentId !== null && { agentId }) }
  if (kind === 'approval_waiting') {
    const key = agentId === null ? null : await requesterKey(sql, environmentId, agentId)
    if (agentId !== null && key === null) return 0
    // No request stays pending longer than this, so skip older ones of the agent.
    const ofRequester = key === null ? '' : 'AND agent_key = :key AND created_at > :past'
    const text = `SELECT created_at AS at FROM approvals WHERE environment_id = :env ${ofRequester}
      AND status = 'PENDING' AND expires_at > :now ORDER BY created_at, id LIMIT 1`
    const past = key && now - LIMITS.approvalTimeoutMsMax
    const oldest = await sql.get<{ at: number }>(text, { env: environmentId, key, past, now })
    return oldest === null ? 0 : (now - oldest.at) / 60_000
  }
  if (kind === 'no_runs') {
    const text = `SELECT id FROM runs WHERE environment_id = :env${ofAgent} AND started_at >= :since ORDER BY started_at LIMIT 1`
    return (await sql.get(text, { ...of, since })) === null ? 0 : 1
  }
  const newest = { ...of, since, limit: RUNS_LOOKED_AT }
  const newestThat = (condition: string, column: string) => `SELECT COUNT(*) AS count FROM (SELECT ${column} FROM runs
    WHERE environment_id = :env${ofAgent} AND ${condition} AND started_at >= :since
    ORDER BY started_at DESC LIMIT :limit) newest`
  if (kind === 'stalled_runs') {
    const silent = `${newestThat("status = 'RUNNING'", 'last_event_at')} WHERE last_event_at < :before`
    const before = await stalledBefore(sql, environmentId, now)
    const closed = await countOf(sql, newestThat('rule_closed_at IS NOT NULL', 'id'), newest)
    return closed + (await countOf(sql, silent, { ...newest, before }))
  }
  if (kind === 'incomplete_runs') return countOf(sql, newestThat('has_gaps = 1', 'id'), newest)
  const partHours = await readPartHours(sql, environmentId, { from, to, stepMs: to - from })
  const text = `SELECT CAST(COALESCE(SUM(failed), 0) AS BIGINT) AS failed, CAST(COALESCE(SUM(cost_nanos), 0) AS BIGINT) AS cost,
      CAST(COALESCE(SUM(completed + failed + cancelled), 0) AS BIGINT) AS ended
    FROM ${rowsInHours(sql, 'hours', partHours)}${ofAgent}`
  const params = { ...of, from, to, ...partParams(sql, partHours, 'hours') }
  const sums = await sql.get<{ failed: number; ended: number; cost: number }>(text, params)
  const { failed = 0, ended = 0, cost = 0 } = sums ?? {}
  if (kind !== 'budget' && leastRuns > 1 && ended < leastRuns) return null
  if (kind === 'error_rate') return ended === 0 ? null : { part: failed, whole: ended }
  return cost / NANOS
}

/** Null: no request names the agent, because requests have external ids only. */
async function requesterKey(sql: Sql, environmentId: string, agentId: string): Promise<string | null> {
  const text = 'SELECT external_id AS "agentId" FROM agents WHERE environment_id = :env AND id = :agentId'
  const alertRow = await sql.get<{ agentId: string | null }>(text, { env: environmentId, agentId })
  return alertRow?.agentId ? agentKeyOf({ agentId: alertRow.agentId, clientId: '' }) : null
}

async function recordAlertCheck(sql: Sql, check: AlertCheck): Promise<boolean> {
  const { environmentId, id, owner, at, state, nextAt, news } = check
  const workHold: WorkHold = { kind: 'check_alert', owner, items: [{ environmentId, subjectId: id }] }
  // First, because it checks the owner and locks the work.
  if ((await postponeWork(sql, workHold, { dueAt: nextAt, error: null, counts: false })) === 0) return false
  const text = 'UPDATE alerts SET state = :state, checked_at = :at WHERE environment_id = :env AND id = :id'
  await sql.run(text, { state: JSON.stringify(state), at, env: environmentId, id })
  if (news) await announceAlert(sql, environmentId, news, at)
  if (news) await queueNotices(sql, environmentId, news.type, [id], at)
  return true
}
