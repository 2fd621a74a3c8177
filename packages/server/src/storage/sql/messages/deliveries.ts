/**
 *   (none) --announced or sent--> PENDING --attempt succeeded--> DELIVERED
 *                                  |   ^                            |
 *                attempt failed, --+   +---------redeliver----------+
 *                but not the last      |                            |
 *                                  the last attempt failed --> FAILED
 *
 * A PENDING delivery has a row in the work queue. When newer deliveries exceed the bound of their webhook, the oldest
 * pending ones are deleted.
 */
import { read, write, selectList, type Sql } from '../engine/sql.ts'
import { randomBytes } from 'node:crypto'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { DeliveryStatus, WebhookEvent, WebhookFormat } from '@tacho/contract/messages/webhook.ts'
import type { AuditEntry } from '../../people/operators.ts'
import type { Page, PageById } from '../../engine/page.ts'
import { uuidv7 } from '../../engine/uuid.ts'
import type {
  DeliveryAttempt,
  DeliveryHold,
  DeliveryOrder,
  DeliveryRow,
  NewDelivery,
  News,
} from '../../messages/messages.ts'
import type { NewWork, WorkHold } from '../../engine/work.ts'
import { insertAudit } from '../people/audit.ts'
import { keepRemovalsWaiting } from '../data/erased-keys.ts'
import { allIn, chunksOf, insertRows } from '../engine/rows.ts'
import { takeSum, withSum } from '../engine/row-sums.ts'
import { OF_UUID } from '../runs/runs.ts'
import { findWebhook } from './webhooks.ts'
import { enqueueWork, finishWork, postponeWork } from '../engine/work.ts'

export const deliveriesActs = {
  ...read({ listDeliveries, startDelivery }),
  ...write({ sendToWebhook, tellOfRun, redeliver, recordAttempt }),
}

/** A literal, because a plan for any status would scan all deliveries for a rare one. */
const WITH_STATUS: Record<DeliveryStatus, string> = {
  PENDING: `status = 'PENDING'`,
  DELIVERED: `status = 'DELIVERED'`,
  FAILED: `status = 'FAILED'`,
}
const DELIVERIES_KEPT = 500
const DROPPED_AT_ONCE = 10_000

const DELIVERY = selectList('id type status attempts created_at last_attempt_at next_attempt_at response_status error')

interface Listening {
  id: string
  events: string
  format: WebhookFormat
  buttons: boolean | number
}

const OUTCOMES: ReadonlySet<WebhookEvent> = new Set(['approval.decided', 'approval.expired', 'approval.withdrawn'])

/**
 * Whether a webhook that gets requests for approval also gets this outcome. Buttons and incidents must end, and people
 * must learn that their answer is no longer needed.
 */
function endsRequest({ format, buttons }: Listening, type: WebhookEvent): boolean {
  if (!OUTCOMES.has(type)) return false
  return Boolean(buttons) || format === 'pagerduty' || (type === 'approval.withdrawn' && format !== 'standard')
}

/**
 * Returns how many webhooks get the message. A webhook also gets the outcome of its requests (`endsRequest`), unless it
 * is `shownIn`.
 */
export async function announce(
  sql: Sql,
  environmentId: string,
  type: WebhookEvent,
  happened: { at: number; data: object }[],
  shownIn?: string,
): Promise<number> {
  if (happened.length === 0) return 0
  const listening = `SELECT ${withSum('webhooks')}, signing_secret IS NOT NULL AS buttons FROM webhooks
    WHERE environment_id = :env AND disabled_at IS NULL ORDER BY id`
  const news = happened.map(({ at, data }) => ({ at, data: JSON.stringify(data) }))
  let webhooks = 0
  for (const row of await sql.all<Listening>(listening, { env: environmentId })) {
    if (!takeSum(sql, 'webhooks', row, environmentId)) continue
    const { id: webhookId, events } = row
    const chosen = JSON.parse(events) as WebhookEvent[]
    const asked = webhookId !== shownIn && chosen.includes('approval.requested') && endsRequest(row, type)
    if (!asked && !chosen.includes(type)) continue
    const deliveries = news.map(({ at, data }): NewDelivery => {
      return { id: uuidv7(at, randomBytes), webhookId, environmentId, type, createdAt: at, data }
    })
    await insertDeliveries(sql, deliveries)
    webhooks++
  }
  return webhooks
}

/** False, queuing nothing: the caller no longer holds the work. */
async function tellOfRun(sql: Sql, workHold: WorkHold, environmentId: string, run: string, { type, ...news }: News) {
  // Blocks an erasure, which then removes the message too. If one came first, the run is already deleted.
  await keepRemovalsWaiting(sql, environmentId)
  if ((await finishWork(sql, workHold)) === 0) return false
  const find = `SELECT id FROM runs WHERE environment_id = :env AND ${OF_UUID}`
  if ((await sql.get(find, { env: environmentId, run })) !== null) await announce(sql, environmentId, type, [news])
  return true
}

async function sendToWebhook(sql: Sql, delivery: NewDelivery, audit: AuditEntry[]): Promise<DeliveryRow> {
  await insertAudit(sql, audit)
  await insertDeliveries(sql, [delivery])
  const { id, type, createdAt } = delivery
  const nothing = { lastAttemptAt: null, responseStatus: null, error: null }
  return { id, type, status: 'PENDING', attempts: 0, createdAt, nextAttemptAt: createdAt, ...nothing }
}

async function insertDeliveries(sql: Sql, deliveries: NewDelivery[]): Promise<void> {
  const rows = deliveries.map((delivery) => {
    return { ...delivery, status: 'PENDING', attempts: 0, nextAttemptAt: delivery.createdAt }
  })
  await insertRows(sql, 'webhook_deliveries', rows)
  const work = deliveries.map(({ environmentId, id, createdAt }): NewWork => {
    return { kind: 'deliver_webhook', environmentId, subjectId: id, dueAt: createdAt }
  })
  await enqueueWork(sql, work)
  const [first] = deliveries
  if (first) await dropOldest(sql, first)
}

/** Deletes the oldest deliveries, because a receiver that does not answer must not fill the store. */
async function dropOldest(sql: Sql, { environmentId, webhookId, createdAt: now }: NewDelivery): Promise<void> {
  const of = { env: environmentId, webhookId }
  const excess = await sql.all<{ id: string }>(
    `SELECT id FROM webhook_deliveries WHERE environment_id = :env AND webhook_id = :webhookId AND status = 'PENDING'
      ORDER BY id DESC LIMIT ${DROPPED_AT_ONCE} OFFSET ${LIMITS.webhookPendingDeliveries}`,
    of,
  )
  if (excess.length === 0) return
  // Keep deliveries that a node is sending now.
  const free = `DELETE FROM work WHERE kind = 'deliver_webhook' AND environment_id = :env AND subject_id IN (:ids)
    AND (lease_owner IS NULL OR due_at <= :now) RETURNING subject_id AS id`
  const pending = excess.map(({ id }) => id)
  const dropped = await allIn<{ id: string }>(sql, free, { env: environmentId, ids: pending, now })
  const ids = dropped.map(({ id }) => id)
  const remove = `DELETE FROM webhook_deliveries WHERE environment_id = :env AND webhook_id = :webhookId AND id IN (:ids)`
  for (const chunk of chunksOf(ids)) await sql.run(remove, { ...of, ids: chunk })
  const count = `UPDATE webhooks SET dropped_deliveries = dropped_deliveries + :dropped
    WHERE environment_id = :env AND id = :webhookId`
  await sql.run(count, { ...of, dropped: ids.length })
}

function listDeliveries(
  sql: Sql,
  environmentId: string,
  webhookId: string,
  { status }: { status?: DeliveryStatus | undefined },
  { limit, after }: PageById,
): Promise<Page<DeliveryRow>> {
  const only = `${status === undefined ? '' : ` AND ${WITH_STATUS[status]}`}${after === null ? '' : ' AND id < :after'}`
  const text = `SELECT ${DELIVERY} FROM webhook_deliveries
    WHERE environment_id = :env AND webhook_id = :webhookId${only} ORDER BY id DESC`
  return sql.page(text, { env: environmentId, webhookId, after }, limit)
}

async function redeliver(
  sql: Sql,
  environmentId: string,
  webhookId: string,
  id: string,
  now: number,
  audit: AuditEntry[],
): Promise<DeliveryRow | 'waiting' | null> {
  const one = 'environment_id = :env AND webhook_id = :webhookId AND id = :id'
  const of = { env: environmentId, webhookId, id }
  const text = `UPDATE webhook_deliveries SET status = 'PENDING', attempts = 0, next_attempt_at = :now
    WHERE ${one} AND status <> 'PENDING' RETURNING ${DELIVERY}`
  const delivery = await sql.get<DeliveryRow>(text, { ...of, now })
  if (delivery === null) {
    const waiting = await sql.get<object>(`SELECT id FROM webhook_deliveries WHERE ${one}`, of)
    return waiting && 'waiting'
  }
  await enqueueWork(sql, [{ kind: 'deliver_webhook', environmentId, subjectId: id, dueAt: now }])
  await insertAudit(sql, audit)
  return delivery
}

async function startDelivery(sql: Sql, { environmentId, id, owner }: DeliveryHold): Promise<DeliveryOrder | null> {
  const text = `SELECT ${DELIVERY}, data, webhook_id AS "webhookId" FROM webhook_deliveries
    WHERE environment_id = :env AND id = :id AND EXISTS (SELECT 1 FROM work
      WHERE environment_id = :env AND kind = 'deliver_webhook' AND subject_id = :id AND lease_owner = :owner)`
  const row = await sql.get<DeliveryOrder['delivery'] & { webhookId: string }>(text, { env: environmentId, id, owner })
  const webhook = row && (await findWebhook(sql, environmentId, row.webhookId))
  if (!webhook) return null
  const { webhookId: _webhook, ...delivery } = row
  return { webhook, delivery }
}

/** Removes the delivery from the queue or postpones it. False, storing nothing: the owner no longer holds it. */
async function recordAttempt(sql: Sql, attempt: DeliveryAttempt): Promise<boolean> {
  const { environmentId, id, webhookId, owner, at, status, nextAttemptAt, responseStatus, error, disable } = attempt
  const workHold: WorkHold = { kind: 'deliver_webhook', owner, items: [{ environmentId, subjectId: id }] }
  // First, because it checks the owner and locks the work.
  const held =
    nextAttemptAt === null
      ? await finishWork(sql, workHold)
      : await postponeWork(sql, workHold, { dueAt: nextAttemptAt, error, counts: false })
  if (held === 0) return false
  const text = `UPDATE webhook_deliveries SET status = :status, attempts = attempts + 1, last_attempt_at = :at,
      next_attempt_at = :nextAttemptAt, response_status = :responseStatus, error = :error
    WHERE environment_id = :env AND webhook_id = :webhookId AND id = :id`
  const env = environmentId
  await sql.run(text, { status, at, nextAttemptAt, responseStatus, error, env, webhookId, id })
  if (disable !== null) {
    const off = `UPDATE webhooks SET disabled_at = :at, disabled_reason = :disable
      WHERE environment_id = :env AND id = :webhookId AND disabled_at IS NULL`
    await sql.run(off, { at, disable, env, webhookId })
  }
  if (nextAttemptAt === null) await trimDeliveries(sql, environmentId, webhookId)
  return true
}

async function trimDeliveries(sql: Sql, environmentId: string, webhookId: string): Promise<void> {
  const ofWebhook = 'webhook_deliveries WHERE environment_id = :env AND webhook_id = :webhookId'
  const text = `DELETE FROM ${ofWebhook} AND status <> 'PENDING' AND
    id <= (SELECT id FROM ${ofWebhook} ORDER BY id DESC LIMIT 1 OFFSET ${DELIVERIES_KEPT})`
  await sql.run(text, { env: environmentId, webhookId })
}
