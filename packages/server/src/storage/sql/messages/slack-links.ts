/**
 *   (none) --askSlackLink--> has a code --confirmSlackLink, before it expires--> linked
 *                              |      ^                                            |
 *                              +------+ a press makes a new code                   +--> removed: by the person or an admin, or
 *                                                                                       with the account, webhook or secret
 */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { AuditEntry } from '../../people/operators.ts'
import type { PageById } from '../../engine/page.ts'
import { MINUTE_MS } from '../../engine/times.ts'
import type { LinkedPerson, NewSlackCode, SlackLinkRow, SlackUser } from '../../messages/messages.ts'
import { read, write, selectList, type Sql } from '../engine/sql.ts'
import { insertAudit } from '../people/audit.ts'
import { lockEnvironment } from '../tenants/workspaces.ts'
import { insertRows } from '../engine/rows.ts'
import { findWebhook } from './webhooks.ts'
import { rolesOf } from '../people/operators.ts'

export const slackLinksActs = {
  ...read({ findSlackCode, findLinkedPerson, listSlackLinks, listSlackLinksOf }),
  ...write({ askSlackLink, confirmSlackLink, removeSlackLink, removeSlackLinkOf }),
}

const USER = 'team_id team_name user_id user_name'
const COLUMNS = selectList(`id environment_id webhook_id ${USER} operator_id changed_at`, 'l.')
const LINKS = `SELECT ${COLUMNS}, o.email FROM slack_links l JOIN operators o ON o.id = l.operator_id`

/** Replaces an older code. `linked`: the two were linked meanwhile. `gone`: the webhook was removed. */
async function askSlackLink(
  sql: Sql,
  code: NewSlackCode,
): Promise<'asked' | 'linked' | 'gone' | 'too_many' | 'too_often'> {
  const { environmentId, webhookId, teamId, userId, codeExpiresAt, changedAt } = code
  await lockEnvironment(sql, environmentId)
  if ((await findWebhook(sql, environmentId, webhookId)) === null) return 'gone'
  const of = { env: environmentId, webhookId, teamId, userId, changedAt }
  const counted = `SELECT COUNT(*) AS links, COALESCE(SUM(CASE WHEN code_expires_at > :recent THEN 1 ELSE 0 END), 0) AS lately
    FROM slack_links WHERE environment_id = :env AND webhook_id = :webhookId AND COALESCE(code_expires_at > :changedAt, 1 = 1)
      AND NOT (team_id = :teamId AND user_id = :userId)`
  const recent = codeExpiresAt - MINUTE_MS
  const counts = await sql.get<{ links: number; lately: number }>(counted, { ...of, recent })
  if ((counts?.links ?? 0) >= LIMITS.slackLinks) return 'too_many'
  if ((counts?.lately ?? 0) >= LIMITS.slackCodesPerMinute) return 'too_often'
  const replaced = `ON CONFLICT (environment_id, webhook_id, team_id, user_id) DO UPDATE SET team_name = excluded.team_name,
      user_name = excluded.user_name, code_hash = excluded.code_hash, code_expires_at = excluded.code_expires_at,
      changed_at = excluded.changed_at
    WHERE slack_links.operator_id IS NULL`
  return (await insertRows(sql, 'slack_links', [code], replaced)) === 1 ? 'asked' : 'linked'
}

const OF_CODE = 'environment_id = :env AND webhook_id = :webhookId AND code_hash = :codeHash AND code_expires_at > :now'

function findSlackCode(sql: Sql, environmentId: string, webhookId: string, codeHash: string, now: number) {
  const text = `SELECT ${selectList(`${USER} code_expires_at`)} FROM slack_links WHERE ${OF_CODE}`
  return sql.get<SlackUser & { codeExpiresAt: number }>(text, { env: environmentId, webhookId, codeHash, now })
}

/** Confirms a link once: the code is deleted. Null: it is unknown, used or expired. */
async function confirmSlackLink(
  sql: Sql,
  { environmentId, webhookId, codeHash }: { environmentId: string; webhookId: string; codeHash: string },
  operatorId: string,
  now: number,
  audit: AuditEntry,
): Promise<SlackLinkRow | null> {
  const env = environmentId
  const text = `UPDATE slack_links SET operator_id = :operatorId, code_hash = NULL, code_expires_at = NULL, changed_at = :now
    WHERE ${OF_CODE} RETURNING id`
  const confirmed = await sql.get<{ id: string }>(text, { env, webhookId, codeHash, operatorId, now })
  if (confirmed === null) return null
  await insertAudit(sql, [{ ...audit, targetId: confirmed.id }])
  return sql.get<SlackLinkRow>(`${LINKS} WHERE l.environment_id = :env AND l.id = :id`, { env, id: confirmed.id })
}

async function findLinkedPerson(
  sql: Sql,
  environmentId: string,
  webhookId: string,
  { teamId, userId }: Pick<SlackUser, 'teamId' | 'userId'>,
): Promise<LinkedPerson | null> {
  const text = `SELECT o.id, o.email FROM slack_links l JOIN operators o ON o.id = l.operator_id
    WHERE l.environment_id = :env AND l.webhook_id = :webhookId AND l.team_id = :teamId AND l.user_id = :userId`
  const person = await sql.get<{ id: string; email: string }>(text, { env: environmentId, webhookId, teamId, userId })
  return person && { ...person, ...(await rolesOf(sql, person.id)) }
}

function listSlackLinks(sql: Sql, environmentId: string, webhookId: string, { limit, after }: PageById) {
  const text = `${LINKS} WHERE l.environment_id = :env AND l.webhook_id = :webhookId AND l.id > :after ORDER BY l.id`
  return sql.page<SlackLinkRow>(text, { env: environmentId, webhookId, after: after ?? '' }, limit)
}

function listSlackLinksOf(sql: Sql, operatorId: string): Promise<SlackLinkRow[]> {
  const text = `${LINKS} WHERE l.operator_id = :operatorId ORDER BY l.id DESC LIMIT ${LIMITS.slackLinksOfAccount}`
  return sql.all(text, { operatorId })
}

function removeSlackLink(sql: Sql, environmentId: string, webhookId: string, id: string, audit: AuditEntry[]) {
  const one = 'l.environment_id = :env AND l.webhook_id = :webhookId AND l.id = :id'
  return remove(sql, one, { env: environmentId, webhookId, id }, audit)
}

function removeSlackLinkOf(sql: Sql, operatorId: string, id: string, audit: AuditEntry[]) {
  return remove(sql, 'l.operator_id = :operatorId AND l.id = :id', { operatorId, id }, audit)
}

async function remove(sql: Sql, condition: string, params: Record<string, string>, audit: AuditEntry[]) {
  const link = await sql.get<SlackLinkRow>(`${LINKS} WHERE ${condition}`, params)
  if (link === null) return null
  const text = 'DELETE FROM slack_links WHERE environment_id = :env AND id = :id'
  await sql.run(text, { env: link.environmentId, id: link.id })
  await insertAudit(sql, audit)
  return link
}
