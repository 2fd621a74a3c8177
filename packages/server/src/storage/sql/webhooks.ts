/**
 * A delivery and the states it goes through.
 *
 *   (none) --announced or sent--> PENDING --attempt succeeded--> DELIVERED
 *                                  |   ^                            |
 *                attempt failed, --+   +---------redeliver----------+
 *                but not the last      |                            |
 *                                  the last attempt failed --> FAILED
 *
 * While it is PENDING there is a row for it in the work queue.
 */
import { randomUUIDv7 } from 'node:crypto'
import type { DeliveryStatus, WebhookEvent } from '@tacho/contract/operator/webhook.ts'
import type { AuditEntry } from '../audit.ts'
import type { PageById } from '../page.ts'
import type {
  DeliveryAttempt,
  DeliveryHold,
  DeliveryOrder,
  DeliveryRow,
  NewDelivery,
  WebhookPatch,
  WebhookRow,
} from '../webhooks.ts'
import { insertAudit } from './audit.ts'
import type { Sql, SqlValue } from './sql.ts'
import type { WorkHold } from '../work.ts'
import { enqueueWork, finishWork, postponeWork } from './work.ts'

const PER_ENVIRONMENT = 20
const DELIVERIES_KEPT = 500

const NAMES = {
  id: 'id',
  environmentId: 'environment_id',
  url: 'url',
  description: 'description',
  format: 'format',
  events: 'events',
  secret: 'secret',
  previousSecret: 'previous_secret',
  previousUntil: 'previous_until',
  createdAt: 'created_at',
  disabledAt: 'disabled_at',
  disabledReason: 'disabled_reason',
} as const satisfies Record<keyof WebhookRow, string>
const COLUMNS = Object.entries(NAMES)
  .map(([name, column]) => `${column} AS "${name}"`)
  .join(', ')

const DELIVERY = `id, type, status, attempts, created_at AS "createdAt", last_attempt_at AS "lastAttemptAt",
  next_attempt_at AS "nextAttemptAt", response_status AS "responseStatus", error`

/** As it is stored: the events are JSON. */
type Stored = Omit<WebhookRow, 'events'> & { events: string }

function toRow(stored: Stored): WebhookRow {
  return { ...stored, events: JSON.parse(stored.events) as WebhookEvent[] }
}

export async function createWebhook(
  sql: Sql,
  webhook: WebhookRow,
  audit: AuditEntry[],
): Promise<'created' | 'too_many'> {
  const count = await sql.get<{ count: number }>('SELECT COUNT(*) AS count FROM webhooks WHERE environment_id = ?', [
    webhook.environmentId,
  ])
  if ((count?.count ?? 0) >= PER_ENVIRONMENT) return 'too_many'
  const names = Object.keys(NAMES) as (keyof WebhookRow)[]
  const text = `INSERT INTO webhooks (${names.map((name) => NAMES[name]).join(', ')})
    VALUES (${names.map(() => '?').join(', ')})`
  await sql.run(
    text,
    names.map((name) => valueOf(webhook[name])),
  )
  await insertAudit(sql, audit)
  return 'created'
}

function valueOf(value: WebhookRow[keyof WebhookRow]): SqlValue {
  return Array.isArray(value) ? JSON.stringify(value) : value
}

export async function listWebhooks(sql: Sql, environmentId: string, { limit, after }: PageById): Promise<WebhookRow[]> {
  const text = `SELECT ${COLUMNS} FROM webhooks WHERE environment_id = ? AND id > ? ORDER BY id LIMIT ?`
  return (await sql.all<Stored>(text, [environmentId, after ?? '', limit])).map(toRow)
}

export async function findWebhook(sql: Sql, environmentId: string, id: string): Promise<WebhookRow | null> {
  const text = `SELECT ${COLUMNS} FROM webhooks WHERE environment_id = ? AND id = ?`
  const stored = await sql.get<Stored>(text, [environmentId, id])
  return stored && toRow(stored)
}

export async function changeWebhook(
  sql: Sql,
  environmentId: string,
  id: string,
  change: WebhookPatch,
  audit: AuditEntry[],
): Promise<WebhookRow | null> {
  const names = (Object.keys(change) as (keyof WebhookPatch)[]).filter((name) => change[name] !== undefined)
  if (names.length > 0) {
    const set = names.map((name) => `${NAMES[name]} = ?`).join(', ')
    const values = names.map((name) => valueOf(change[name] ?? null))
    const text = `UPDATE webhooks SET ${set} WHERE environment_id = ? AND id = ?`
    if ((await sql.run(text, [...values, environmentId, id])) === 0) return null
    await insertAudit(sql, audit)
  }
  return findWebhook(sql, environmentId, id)
}

export async function removeWebhook(
  sql: Sql,
  environmentId: string,
  id: string,
  audit: AuditEntry[],
): Promise<WebhookRow | null> {
  const webhook = await findWebhook(sql, environmentId, id)
  if (webhook === null) return null
  await sql.run(
    `DELETE FROM work WHERE kind = 'deliver_webhook' AND environment_id = ? AND subject_id IN
      (SELECT id FROM webhook_deliveries WHERE environment_id = ? AND webhook_id = ? AND status = 'PENDING')`,
    [environmentId, environmentId, id],
  )
  await sql.run('DELETE FROM webhook_deliveries WHERE environment_id = ? AND webhook_id = ?', [environmentId, id])
  await sql.run('DELETE FROM webhooks WHERE environment_id = ? AND id = ?', [environmentId, id])
  await insertAudit(sql, audit)
  return webhook
}

/** Part of the act in which something happens: tells every webhook of the environment that wants to know of it. */
export async function announce(
  sql: Sql,
  environmentId: string,
  type: WebhookEvent,
  happened: { at: number; data: object }[],
): Promise<void> {
  if (happened.length === 0) return
  const listening = `SELECT id, events FROM webhooks WHERE environment_id = ? AND disabled_at IS NULL ORDER BY id`
  for (const { id: webhookId, events } of await sql.all<{ id: string; events: string }>(listening, [environmentId])) {
    if (!(JSON.parse(events) as string[]).includes(type)) continue
    for (const { at, data } of happened) {
      const delivery = { webhookId, environmentId, type, createdAt: at, data: JSON.stringify(data) }
      await insertDelivery(sql, { id: randomUUIDv7(), ...delivery })
    }
  }
}

export async function sendToWebhook(sql: Sql, delivery: NewDelivery, audit: AuditEntry[]): Promise<DeliveryRow> {
  await insertAudit(sql, audit)
  return insertDelivery(sql, delivery)
}

async function insertDelivery(sql: Sql, delivery: NewDelivery): Promise<DeliveryRow> {
  const { id, webhookId, environmentId, type, createdAt, data } = delivery
  const text = `INSERT INTO webhook_deliveries (webhook_id, id, environment_id, type, status, attempts, created_at,
      next_attempt_at, data)
    VALUES (?, ?, ?, ?, 'PENDING', 0, ?, ?, ?)`
  await sql.run(text, [webhookId, id, environmentId, type, createdAt, createdAt, data])
  await enqueueWork(sql, { kind: 'deliver_webhook', environmentId, subjectId: id, dueAt: createdAt })
  const nothing = { lastAttemptAt: null, responseStatus: null, error: null }
  return { id, type, status: 'PENDING', attempts: 0, createdAt, nextAttemptAt: createdAt, ...nothing }
}

export function listDeliveries(
  sql: Sql,
  environmentId: string,
  webhookId: string,
  { status }: { status?: DeliveryStatus | undefined },
  { limit, after }: PageById,
): Promise<DeliveryRow[]> {
  const conditions = ['environment_id = ?', 'webhook_id = ?']
  const params: SqlValue[] = [environmentId, webhookId]
  if (status !== undefined) conditions.push('status = ?')
  if (status !== undefined) params.push(status)
  if (after !== null) conditions.push('id < ?')
  if (after !== null) params.push(after)
  const text = `SELECT ${DELIVERY} FROM webhook_deliveries WHERE ${conditions.join(' AND ')} ORDER BY id DESC LIMIT ?`
  return sql.all(text, [...params, limit])
}

export async function redeliver(
  sql: Sql,
  environmentId: string,
  webhookId: string,
  id: string,
  now: number,
  audit: AuditEntry[],
): Promise<DeliveryRow | 'waiting' | null> {
  const one = 'environment_id = ? AND webhook_id = ? AND id = ?'
  const text = `UPDATE webhook_deliveries SET status = 'PENDING', attempts = 0, next_attempt_at = ?
    WHERE ${one} AND status <> 'PENDING' RETURNING ${DELIVERY}`
  const delivery = await sql.get<DeliveryRow>(text, [now, environmentId, webhookId, id])
  if (delivery === null) {
    const waiting = await sql.get<object>(`SELECT id FROM webhook_deliveries WHERE ${one}`, [
      environmentId,
      webhookId,
      id,
    ])
    return waiting && 'waiting'
  }
  await enqueueWork(sql, { kind: 'deliver_webhook', environmentId, subjectId: id, dueAt: now })
  await insertAudit(sql, audit)
  return delivery
}

export async function startDelivery(
  sql: Sql,
  { environmentId, id, owner }: DeliveryHold,
): Promise<DeliveryOrder | null> {
  const text = `SELECT ${DELIVERY}, data, webhook_id AS "webhookId" FROM webhook_deliveries
    WHERE environment_id = ? AND id = ? AND EXISTS
      (SELECT 1 FROM work WHERE kind = 'deliver_webhook' AND subject_id = ? AND lease_owner = ?)`
  const row = await sql.get<DeliveryOrder['delivery'] & { webhookId: string }>(text, [environmentId, id, id, owner])
  const webhook = row && (await findWebhook(sql, environmentId, row.webhookId))
  if (!webhook) return null
  const { webhookId: _webhook, ...delivery } = row
  return { webhook, delivery }
}

export async function recordAttempt(sql: Sql, attempt: DeliveryAttempt): Promise<boolean> {
  const { environmentId, id, webhookId, owner, at, status, nextAttemptAt, responseStatus, error, disable } = attempt
  const hold: WorkHold = { kind: 'deliver_webhook', owner, subjectIds: [id] }
  // First, because it compares the owner and locks the work: from here on no other node can take it.
  const held =
    nextAttemptAt === null
      ? await finishWork(sql, hold)
      : await postponeWork(sql, hold, { dueAt: nextAttemptAt, error, counts: false })
  if (held === 0) return false
  const text = `UPDATE webhook_deliveries SET status = ?, attempts = attempts + 1, last_attempt_at = ?,
      next_attempt_at = ?, response_status = ?, error = ?
    WHERE environment_id = ? AND webhook_id = ? AND id = ?`
  await sql.run(text, [status, at, nextAttemptAt, responseStatus, error, environmentId, webhookId, id])
  if (disable !== null) {
    const off = `UPDATE webhooks SET disabled_at = ?, disabled_reason = ?
      WHERE environment_id = ? AND id = ? AND disabled_at IS NULL`
    await sql.run(off, [at, disable, environmentId, webhookId])
  }
  if (nextAttemptAt === null) await trimDeliveries(sql, environmentId, webhookId)
  return true
}

/** Deletes the oldest ended deliveries beyond the bound. */
async function trimDeliveries(sql: Sql, environmentId: string, webhookId: string): Promise<void> {
  const text = `DELETE FROM webhook_deliveries WHERE environment_id = ? AND webhook_id = ? AND status <> 'PENDING' AND
    id <= (SELECT id FROM webhook_deliveries WHERE environment_id = ? AND webhook_id = ?
      ORDER BY id DESC LIMIT 1 OFFSET ?)`
  await sql.run(text, [environmentId, webhookId, environmentId, webhookId, DELIVERIES_KEPT])
}
