import { read, write, countOf, selectList, type Sql } from '../engine/sql.ts'
import type { AuditEntry } from '../../people/operators.ts'
import { mapPage, type Page, type PageById } from '../../engine/page.ts'
import type { WebhookPatch, WebhookRow } from '../../messages/messages.ts'
import { insertAudit } from '../people/audit.ts'
import { lockEnvironment } from '../tenants/workspaces.ts'
import { columnOf } from '../../data/exports.ts'
import { insertRows, stored, withJson } from '../engine/rows.ts'
import { damagedError, DELETE_IT, nameOf, rowSum, takeSum, withSum } from '../engine/row-sums.ts'

export const webhooksActs = {
  ...read({ listWebhooks, findWebhook }),
  ...write({ createWebhook, changeWebhook, removeWebhook }),
}

const PER_ENVIRONMENT = 20

const COLUMNS = `${withSum('webhooks')}, ${selectList(`environment_id description secret previous_secret previous_until
  signing_secret created_at disabled_at disabled_reason dropped_deliveries`)}`

const UNLINK = 'DELETE FROM slack_links WHERE environment_id = :env AND webhook_id = :id'

const parsed = withJson<Omit<WebhookRow, 'showsInput'> & { showsInput: 0 | 1 }>('events')

/** A damaged webhook can still be listed and removed. */
function toListed(sql: Sql, environmentId: string, row: object): WebhookRow {
  const isIntact = takeSum(sql, 'webhooks', row, environmentId)
  const webhook = parsed(isIntact ? row : { ...row, url: '', events: '[]' })
  return { ...webhook, showsInput: webhook.showsInput === 1, ...(!isIntact && { damaged: true }) }
}

async function createWebhook(sql: Sql, webhook: WebhookRow, audit: AuditEntry[]): Promise<'created' | 'too_many'> {
  await lockEnvironment(sql, webhook.environmentId)
  const text = 'SELECT COUNT(*) AS count FROM webhooks WHERE environment_id = :env'
  if ((await countOf(sql, text, { env: webhook.environmentId })) >= PER_ENVIRONMENT) return 'too_many'
  await insertRows(sql, 'webhooks', [webhook])
  await insertAudit(sql, audit)
  return 'created'
}

async function listWebhooks(sql: Sql, environmentId: string, { limit, after }: PageById): Promise<Page<WebhookRow>> {
  const text = `SELECT ${COLUMNS} FROM webhooks WHERE environment_id = :env AND id > :after ORDER BY id`
  const page = await sql.page<object>(text, { env: environmentId, after: after ?? '' }, limit)
  return mapPage(page, (row) => toListed(sql, environmentId, row))
}

async function findListed(sql: Sql, environmentId: string, id: string): Promise<WebhookRow | null> {
  const text = `SELECT ${COLUMNS} FROM webhooks WHERE environment_id = :env AND id = :id`
  const row = await sql.get<object>(text, { env: environmentId, id })
  return row && toListed(sql, environmentId, row)
}

/** Throws for a damaged row: its address may not be the one that was entered. */
export async function findWebhook(sql: Sql, environmentId: string, id: string): Promise<WebhookRow | null> {
  const webhook = await findListed(sql, environmentId, id)
  if (webhook?.damaged) throw damagedError(nameOf('webhooks', webhook), DELETE_IT)
  return webhook
}

async function changeWebhook(sql: Sql, environmentId: string, id: string, change: WebhookPatch, audit: AuditEntry[]) {
  const names = (Object.keys(change) as (keyof WebhookPatch)[]).filter((name) => change[name] !== undefined)
  if (names.length > 0) {
    const set = names.map((name) => `${columnOf(name)} = :${name}`).join(', ')
    const values = Object.fromEntries(names.map((name) => [name, stored(change[name])]))
    const before = await findWebhook(sql, environmentId, id)
    const text = `UPDATE webhooks SET ${set} WHERE environment_id = :env AND id = :id`
    if ((await sql.run(text, { ...values, env: environmentId, id })) === 0) return null
    await sumWebhook(sql, environmentId, id)
    // A new app or channel ends these links, because people confirmed them for the former one.
    const isAnother = (['secret', 'url'] as const).some(
      (name) => change[name] !== undefined && change[name] !== before?.[name],
    )
    if (change.signingSecret !== undefined || isAnother) await sql.run(UNLINK, { env: environmentId, id })
    await insertAudit(sql, audit)
  }
  return findWebhook(sql, environmentId, id)
}

async function sumWebhook(sql: Sql, environmentId: string, id: string): Promise<void> {
  const of = { env: environmentId, id }
  const one = 'WHERE environment_id = :env AND id = :id'
  const row = await sql.get<object>(`SELECT ${withSum('webhooks')} FROM webhooks ${one}`, of)
  if (row === null) return
  await sql.run(`UPDATE webhooks SET row_sum = :sum ${one}`, { ...of, sum: rowSum('webhooks', row) })
}

async function removeWebhook(sql: Sql, environmentId: string, id: string, audit: AuditEntry[]) {
  const webhook = await findListed(sql, environmentId, id)
  if (webhook === null) return null
  const of = { env: environmentId, id }
  await sql.run(
    `DELETE FROM work WHERE kind = 'deliver_webhook' AND environment_id = :env AND subject_id IN
      (SELECT id FROM webhook_deliveries WHERE environment_id = :env AND webhook_id = :id AND status = 'PENDING')`,
    of,
  )
  await sql.run('DELETE FROM webhook_deliveries WHERE environment_id = :env AND webhook_id = :id', of)
  await sql.run(UNLINK, of)
  await sql.run('DELETE FROM webhooks WHERE environment_id = :env AND id = :id', of)
  await insertAudit(sql, audit)
  return webhook
}
