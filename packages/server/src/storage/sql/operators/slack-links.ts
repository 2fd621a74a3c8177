/**
 *   (none) --askSlackLink--> has a code --confirmSlackLink, before it expires--> linked
 *                              |      ^                                            |
 *                              +------+ a press makes a new code                   +--> removed: by the person or an admin, or
 *                                                                                       with the account, webhook or secret
 */
import { LIMITS } from '@tacho/contract/limits.ts'
import type { AuditEntry } from '../../audit.ts'
import type { Page, PageById } from '../../page.ts'
import type { LinkedPerson, NewSlackCode, SlackLinkRow, SlackUser } from '../../slack-links.ts'
import { read, write } from '../act.ts'
import { insertAudit } from '../audit.ts'
import { lockEnvironment } from '../environments.ts'
import type { Sql } from '../sql.ts'
import { findWebhook } from '../webhooks/webhooks.ts'
import { rolesOf } from './operators.ts'

export const slackLinksActs = {
  askSlackLink: write(askSlackLink),
  findSlackCode: read(findSlackCode),
  confirmSlackLink: write(confirmSlackLink),
  findLinkedPerson: read(findLinkedPerson),
  listSlackLinks: read(listSlackLinks),
  listSlackLinksOf: read(listSlackLinksOf),
  removeSlackLink: write(removeSlackLink),
  removeSlackLinkOf: write(removeSlackLinkOf),
}

const MINUTE_MS = 60_000

const USER = `team_id AS "teamId", team_name AS "teamName", user_id AS "userId", user_name AS "userName"`
const LINKS = `SELECT l.id, l.environment_id AS "environmentId", l.webhook_id AS "webhookId", ${USER},
    l.operator_id AS "operatorId", o.email, l.changed_at AS "changedAt"
  FROM slack_links l JOIN operators o ON o.id = l.operator_id`

/** Replaces an older code. `linked`: they are linked meanwhile. `gone`: the webhook was removed. */
async function askSlackLink(
  sql: Sql,
  code: NewSlackCode,
): Promise<'asked' | 'linked' | 'gone' | 'too_many' | 'too_often'> {
  const { id, environmentId, webhookId, teamId, teamName, userId, userName, codeHash, codeExpiresAt, changedAt } = code
  await lockEnvironment(sql, environmentId)
  if ((await findWebhook(sql, environmentId, webhookId)) === null) return 'gone'
  const of = [environmentId, webhookId]
  const counted = `SELECT COUNT(*) AS links, COALESCE(SUM(CASE WHEN code_expires_at > ? THEN 1 ELSE 0 END), 0) AS lately
    FROM slack_links WHERE environment_id = ? AND webhook_id = ? AND COALESCE(code_expires_at > ?, 1 = 1)
      AND NOT (team_id = ? AND user_id = ?)`
  const recent = codeExpiresAt - MINUTE_MS
  const counts = await sql.get<{ links: number; lately: number }>(counted, [recent, ...of, changedAt, teamId, userId])
  if ((counts?.links ?? 0) >= LIMITS.slackLinks) return 'too_many'
  if ((counts?.lately ?? 0) >= LIMITS.slackCodesPerMinute) return 'too_often'
  const text = `INSERT INTO slack_links (id, environment_id, webhook_id, team_id, team_name, user_id, user_name, code_hash,
      code_expires_at, changed_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (environment_id, webhook_id, team_id, user_id) DO UPDATE SET team_name = excluded.team_name,
      user_name = excluded.user_name, code_hash = excluded.code_hash, code_expires_at = excluded.code_expires_at,
      changed_at = excluded.changed_at
    WHERE slack_links.operator_id IS NULL`
  const row = [id, ...of, teamId, teamName, userId, userName, codeHash, codeExpiresAt, changedAt]
  return (await sql.run(text, row)) === 1 ? 'asked' : 'linked'
}

const OF_CODE = 'environment_id = ? AND webhook_id = ? AND code_hash = ? AND code_expires_at > ?'

function findSlackCode(
  sql: Sql,
  environmentId: string,
  webhookId: string,
  codeHash: string,
  now: number,
): Promise<(SlackUser & { codeExpiresAt: number }) | null> {
  const text = `SELECT ${USER}, code_expires_at AS "codeExpiresAt" FROM slack_links WHERE ${OF_CODE}`
  return sql.get(text, [environmentId, webhookId, codeHash, now])
}

/**
 * Once: the code is deleted. Null: it is unknown, used or expired. The target of `audit` becomes the id of the link.
 */
async function confirmSlackLink(
  sql: Sql,
  of: { environmentId: string; webhookId: string; codeHash: string },
  operatorId: string,
  now: number,
  audit: AuditEntry,
): Promise<SlackLinkRow | null> {
  const text = `UPDATE slack_links SET operator_id = ?, code_hash = NULL, code_expires_at = NULL, changed_at = ?
    WHERE ${OF_CODE} RETURNING id`
  const params = [operatorId, now, of.environmentId, of.webhookId, of.codeHash, now]
  const confirmed = await sql.get<{ id: string }>(text, params)
  if (confirmed === null) return null
  await insertAudit(sql, [{ ...audit, targetId: confirmed.id }])
  return sql.get<SlackLinkRow>(`${LINKS} WHERE l.environment_id = ? AND l.id = ?`, [of.environmentId, confirmed.id])
}

/** With the roles that the person has now. */
async function findLinkedPerson(
  sql: Sql,
  environmentId: string,
  webhookId: string,
  { teamId, userId }: Pick<SlackUser, 'teamId' | 'userId'>,
): Promise<LinkedPerson | null> {
  const text = `SELECT o.id, o.email FROM slack_links l JOIN operators o ON o.id = l.operator_id
    WHERE l.environment_id = ? AND l.webhook_id = ? AND l.team_id = ? AND l.user_id = ?`
  const person = await sql.get<{ id: string; email: string }>(text, [environmentId, webhookId, teamId, userId])
  return person && { ...person, ...(await rolesOf(sql, person.id)) }
}

function listSlackLinks(
  sql: Sql,
  environmentId: string,
  webhookId: string,
  { limit, after }: PageById,
): Promise<Page<SlackLinkRow>> {
  const text = `${LINKS} WHERE l.environment_id = ? AND l.webhook_id = ? AND l.id > ? ORDER BY l.id`
  return sql.page(text, [environmentId, webhookId, after ?? ''], limit)
}

/** In all environments, newest first. */
function listSlackLinksOf(sql: Sql, operatorId: string): Promise<SlackLinkRow[]> {
  const text = `${LINKS} WHERE l.operator_id = ? ORDER BY l.id DESC LIMIT ${LIMITS.slackLinksOfAccount}`
  return sql.all(text, [operatorId])
}

function removeSlackLink(
  sql: Sql,
  environmentId: string,
  webhookId: string,
  id: string,
  audit: AuditEntry[],
): Promise<SlackLinkRow | null> {
  return remove(sql, 'l.environment_id = ? AND l.webhook_id = ? AND l.id = ?', [environmentId, webhookId, id], audit)
}

function removeSlackLinkOf(
  sql: Sql,
  operatorId: string,
  id: string,
  audit: AuditEntry[],
): Promise<SlackLinkRow | null> {
  return remove(sql, 'l.operator_id = ? AND l.id = ?', [operatorId, id], audit)
}

async function remove(
  sql: Sql,
  condition: string,
  params: string[],
  audit: AuditEntry[],
): Promise<SlackLinkRow | null> {
  const link = await sql.get<SlackLinkRow>(`${LINKS} WHERE ${condition}`, params)
  if (link === null) return null
  await sql.run('DELETE FROM slack_links WHERE environment_id = ? AND id = ?', [link.environmentId, link.id])
  await insertAudit(sql, audit)
  return link
}
