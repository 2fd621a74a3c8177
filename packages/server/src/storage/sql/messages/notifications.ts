/**
 * Browsers of people, and the notifications that they want.
 *
 *   (none) --addBrowser--> told --renewBrowser, by another session of the person--> told
 *                           |
 *                           +--> removed: by the person, with its session, with the account, by its push service, or because it
 *                                was not opened for long
 *
 * An expired session removes no browser: the phone of a signed-out person still shows that a request waits.
 */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { NotificationChoice, QuietHours, NotificationEvent } from '@tacho/contract/messages/notification.ts'
import type { AuditEntry } from '../../people/operators.ts'
import type {
  BrowserRow,
  NotificationSettingsPatch,
  NotificationSettingsRow,
  ToldBrowser,
  NoticeRow,
} from '../../messages/messages.ts'
import { read, write, countOf, selectList, type Sql, lookup } from '../engine/sql.ts'
import { insertAudit } from '../people/audit.ts'
import { insertRows, withJson, allIn } from '../engine/rows.ts'
import { INSTALLATION } from '../people/operators.ts'
import type { Severity } from '@tacho/contract/policies/runtime-config.ts'
import { findAlert } from './alerts.ts'
import { findApprovals } from '../approvals/approval-rows.ts'
import { dataOfApprovals, findAgentName, ISSUE, issueData, type IssueNews } from './announcements.ts'

export const notificationsActs = {
  ...read({ readNotificationSettings, listToldBrowsers }),
  ...write({ changeNotificationSettings, addBrowser, renewBrowser, removeBrowser }),
}

const COLUMNS = selectList(`id operator_id session_id endpoint endpoint_hash public_key auth_secret user_agent added_at
  opened_at notified_at`)

type StoredQuietHours = Omit<QuietHours, 'exceptCritical'> & { exceptCritical: number }
const QUIET = selectList('from_minute to_minute time_zone except_critical', 'q.')

const toChoice = withJson<NotificationChoice>('kinds')
const toQuietHours = (row: StoredQuietHours): QuietHours => ({ ...row, exceptCritical: row.exceptCritical === 1 })

async function readNotificationSettings(sql: Sql, operatorId: string): Promise<NotificationSettingsRow> {
  const listed = `SELECT ${COLUMNS} FROM notified_browsers WHERE operator_id = :operatorId ORDER BY id LIMIT :limit`
  const browsers = await sql.all<BrowserRow>(listed, { operatorId, limit: LIMITS.notifiedBrowsers })
  const chosen = `SELECT c.environment_id AS "environmentId", e.workspace_id AS "workspaceId", c.kinds, c.severity
    FROM notification_choices c JOIN environments e ON e.id = c.environment_id
    WHERE c.operator_id = :operatorId ORDER BY c.environment_id LIMIT :limit`
  const choices = await sql.all<object>(chosen, { operatorId, limit: LIMITS.notifiedEnvironments })
  const quietText = `SELECT ${QUIET} FROM quiet_hours q WHERE q.operator_id = :operatorId`
  const quiet = await sql.get<StoredQuietHours>(quietText, { operatorId })
  return { browsers, choices: choices.map(toChoice), quietHours: quiet && toQuietHours(quiet) }
}

/** False, changing nothing: the account was deleted. */
async function changeNotificationSettings(
  sql: Sql,
  operatorId: string,
  { choices, quietHours }: NotificationSettingsPatch,
  audit: AuditEntry[],
): Promise<boolean> {
  if (!(await lockOperator(sql, operatorId))) return false
  if (choices !== undefined) {
    await sql.run('DELETE FROM notification_choices WHERE operator_id = :operatorId', { operatorId })
    const rows = choices.map(({ environmentId, kinds, severity }) => ({ environmentId, operatorId, kinds, severity }))
    await insertRows(sql, 'notification_choices', rows)
  }
  if (quietHours !== undefined) await sql.run('DELETE FROM quiet_hours WHERE operator_id = :operatorId', { operatorId })
  if (quietHours) {
    const { fromMinute, toMinute, timeZone, exceptCritical } = quietHours
    await insertRows(sql, 'quiet_hours', [{ operatorId, fromMinute, toMinute, timeZone, exceptCritical }])
  }
  await insertAudit(sql, audit)
  return true
}

async function lockOperator(sql: Sql, id: string): Promise<boolean> {
  const lock = sql.dialect === 'postgres' ? ' FOR NO KEY UPDATE' : ''
  return (await sql.get(`SELECT id FROM operators WHERE id = :id${lock}`, { id })) !== null
}

/** A browser shows the notifications of one person, so it leaves the account that had it before. */
async function addBrowser(sql: Sql, browser: BrowserRow, audit: AuditEntry[]): Promise<'added' | 'too_many' | 'gone'> {
  const { operatorId, endpointHash } = browser
  if (!(await lockOperator(sql, operatorId))) return 'gone'
  const others = `SELECT COUNT(*) AS count FROM notified_browsers
    WHERE operator_id = :operatorId AND endpoint_hash <> :endpointHash`
  if ((await countOf(sql, others, { operatorId, endpointHash })) >= LIMITS.notifiedBrowsers) return 'too_many'
  await sql.run('DELETE FROM notified_browsers WHERE endpoint_hash = :endpointHash', { endpointHash })
  await insertRows(sql, 'notified_browsers', [browser])
  await insertAudit(sql, audit)
  return 'added'
}

async function renewBrowser(
  sql: Sql,
  operatorId: string,
  { endpointHash, sessionId, publicKey, authSecret, userAgent, openedAt }: BrowserRow,
): Promise<BrowserRow | null> {
  const text = `UPDATE notified_browsers SET session_id = :sessionId, public_key = :publicKey, auth_secret = :authSecret,
      user_agent = :userAgent, opened_at = :openedAt
    WHERE endpoint_hash = :endpointHash AND operator_id = :operatorId RETURNING ${COLUMNS}`
  return sql.get(text, { sessionId, publicKey, authSecret, userAgent, openedAt, endpointHash, operatorId })
}

async function removeBrowser(sql: Sql, operatorId: string, id: string, audit: AuditEntry[]) {
  const text = `DELETE FROM notified_browsers WHERE operator_id = :operatorId AND id = :id RETURNING ${COLUMNS}`
  const browser = await sql.get<BrowserRow>(text, { operatorId, id })
  if (browser !== null) await insertAudit(sql, audit)
  return browser
}

type StoredTold = Omit<ToldBrowser, 'quietHours'> & (StoredQuietHours | Record<keyof StoredQuietHours, null>)
const withKinds = withJson<StoredTold>('kinds')

async function listToldBrowsers(sql: Sql, environmentId: string, id: string | null, limit: number) {
  const text = `SELECT b.id, b.endpoint, b.public_key AS "publicKey", b.auth_secret AS "authSecret", c.kinds, c.severity, ${QUIET}
    FROM notification_choices c JOIN notified_browsers b ON b.operator_id = c.operator_id
      LEFT JOIN quiet_hours q ON q.operator_id = c.operator_id
    WHERE c.environment_id = :env${id === null ? '' : ' AND b.id = :id'} AND EXISTS (SELECT 1 FROM operator_roles r
      WHERE r.operator_id = c.operator_id
        AND r.scope IN ('${INSTALLATION}', (SELECT e.workspace_id FROM environments e WHERE e.id = c.environment_id)))
    ORDER BY c.operator_id, b.id LIMIT :limit`
  const rows = await sql.all<object>(text, { env: environmentId, id, limit })
  return rows.map((row): ToldBrowser => {
    const { fromMinute, toMinute, timeZone, exceptCritical, ...browser } = withKinds(row)
    const isQuiet = timeZone !== null
    return { ...browser, quietHours: isQuiet ? toQuietHours({ fromMinute, toMinute, timeZone, exceptCritical }) : null }
  })
}

/** Current state of the subjects of notifications. */
export const noticeSubjectsActs = {
  ...lookup({ countWaitingApprovals }),
  ...read({ findNotices }),
}

async function findNotices(
  sql: Sql,
  environmentId: string,
  event: NotificationEvent,
  ids: string[],
  now: number,
): Promise<NoticeRow[]> {
  if (event === 'approval.requested') return approvalNotices(sql, environmentId, ids, now)
  const one = event === 'alert.firing' || event === 'budget.reached' ? alertNotice : issueNotice
  const noticeRows: NoticeRow[] = []
  for (const id of ids) {
    const notice = await one(sql, environmentId, id)
    if (notice !== null) noticeRows.push(notice)
  }
  return noticeRows
}

const NOTHING = { until: null, policySeverity: null, alert: null }

async function approvalNotices(sql: Sql, environmentId: string, ids: string[], now: number): Promise<NoticeRow[]> {
  const approvals = await findApprovals(sql, environmentId, ids)
  const data = await dataOfApprovals(sql, environmentId, approvals)
  const of = { env: environmentId, ids: approvals.flatMap(({ policyId }) => policyId ?? []) }
  const inForce = `SELECT d.item_id AS id, v.severity FROM deployments d JOIN environments e ON e.id = d.environment_id
    JOIN policy_versions v ON v.workspace_id = e.workspace_id AND v.policy_id = d.item_id AND v.number = d.version
    WHERE d.environment_id = :env AND d.kind = 'policy' AND d.item_id IN (:ids)`
  const severities = await allIn<{ id: string; severity: Severity }>(sql, inForce, of)
  const severityOf = new Map(severities.map(({ id, severity }) => [id, severity]))
  return approvals.map((approval, index) => ({
    ...NOTHING,
    id: approval.id,
    at: approval.createdAt,
    until: approval.expiresAt,
    isCurrent:
      approval.status === 'PENDING' &&
      approval.expiresAt > now &&
      approval.importedAt === null &&
      approval.withdrawnAt === null,
    policySeverity: severityOf.get(approval.policyId ?? '') ?? null,
    data: data[index] ?? {},
  }))
}

/** A budget alert is current until its period ends: the next check resets it. */
async function alertNotice(sql: Sql, environmentId: string, id: string): Promise<NoticeRow | null> {
  const alert = await findAlert(sql, environmentId, id)
  if (alert === null) return null
  const { rule, state, createdAt } = alert
  const isCurrent = rule.kind === 'budget' ? state.percentTold > 0 : state.status === 'FIRING'
  const agentName = rule.agentId === null ? null : await findAgentName(sql, environmentId, rule.agentId)
  return { ...NOTHING, id, at: createdAt, isCurrent, alert, data: { agentName } }
}

async function issueNotice(sql: Sql, environmentId: string, id: string): Promise<NoticeRow | null> {
  const issue = await sql.get<IssueNews>(ISSUE, { env: environmentId, id })
  if (issue === null) return null
  const data = { environmentId, ...issueData(issue) }
  return { ...NOTHING, id, at: issue.lastSeen, isCurrent: issue.state === 'OPEN', data }
}

function countWaitingApprovals(sql: Sql, environmentId: string, now: number, most: number): Promise<number> {
  const text = `SELECT COUNT(*) AS count FROM (SELECT 1 FROM approvals
    WHERE environment_id = :env AND status = 'PENDING' AND expires_at > :now AND withdrawn_at IS NULL LIMIT :most) AS page`
  return countOf(sql, text, { env: environmentId, now, most })
}
