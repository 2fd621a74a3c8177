import { randomBytes } from 'node:crypto'
import type { CreatedWebhook, WebhookFormat } from '@tacho/contract/messages/webhook.ts'
import { uuidv7 } from '../../storage/engine/uuid.ts'
import { newWebhookSecret, toDelivery, toWebhook } from '../../domain/messages/webhook.ts'
import { mailAddressOf } from '../../domain/messages/mail.ts'
import { addressFault } from '../../domain/messages/webhook-formats.ts'
import type { AuditEntry } from '../../storage/people/operators.ts'
import type { WebhookPatch, WebhookRow } from '../../storage/messages/messages.ts'
import { foundOr, refuse } from '../web/reply-error.ts'
import { refuseField } from '../web/field.ts'
import { includesRole, INPUT_FORMATS, WEBHOOK_EVENTS } from '@tacho/contract/engine/words.ts'
import { listById } from '../web/paging.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'

export const NO_WEBHOOK = refuse('not_found', 'The webhook does not exist')
const NO_DELIVERY = refuse('not_found', 'The delivery does not exist')
/** The previous secret also signs for this long, so that receivers can switch. */
const ROTATION_MS = 24 * 60 * 60 * 1000

export function webhooksRoutes(deps: OperatorDeps): void {
  const { serve, storage, now, work, checkWebhookUrl, publicUrl } = deps

  serve('listWebhooks', ({ environment: { id }, workspace, actor, paging }) => {
    const role = actor.roleIn(workspace.id)
    const toItem = (row: WebhookRow) => toWebhook(row, publicUrl(), role !== null && includesRole(role, 'admin'))
    return listById(paging, (page) => storage.listWebhooks(id, page), toItem)
  })

  serve('createWebhook', async ({ body, environment: { id: environmentId }, at, audit, auditRefused }) => {
    const { url, description = '', format = 'standard', events = [...WEBHOOK_EVENTS], signingSecret = null } = body
    const { showsInput = false } = body
    const id = uuidv7(at)
    await checkUrl(environmentId, url, format, (detail) => auditRefused(id, detail))
    checkSigningSecret(format, signingSecret)
    checkShowsInput(format, showsInput)
    const secret = newWebhookSecret(randomBytes)
    const unused = {
      previousSecret: null,
      previousUntil: null,
      disabledAt: null,
      disabledReason: null,
      droppedDeliveries: 0,
    }
    const webhookFields = { url, description, format, events, secret, signingSecret, showsInput }
    const row: WebhookRow = { id, environmentId, ...webhookFields, createdAt: at, ...unused }
    const detail = { host: hostOf(url), format, events, showsInput, ...secretDetail(body) }
    if ((await storage.createWebhook(row, audit(id, detail))) === 'too_many') {
      return refuse('conflict', 'The environment has reached its limit of webhooks')
    }
    return withSecret(row, publicUrl())
  })

  serve('changeWebhook', async ({ params: { webhookId: id }, body, environment, audit, auditRefused }) => {
    const { url, description, events, enabled, signingSecret, showsInput } = body
    if (url !== undefined || signingSecret || showsInput) {
      const { format } = await find(environment, id)
      if (url !== undefined) await checkUrl(environment.id, url, format, (detail) => auditRefused(id, detail))
      checkSigningSecret(format, signingSecret)
      checkShowsInput(format, showsInput)
    }
    const host = url === undefined ? undefined : hostOf(url)
    const detail = { description, events, enabled, host, showsInput, ...secretDetail(body) }
    const change = { url, description, events, signingSecret, showsInput, ...switched(enabled, now()) }
    const row = await storage.changeWebhook(environment.id, id, change, audit(id, detail))
    return toWebhook(foundOr(row, NO_WEBHOOK), publicUrl())
  })

  serve('rotateWebhookSecret', async ({ params: { webhookId: id }, environment, at, audit }) => {
    const { secret: previousSecret } = await find(environment, id)
    const change = { secret: newWebhookSecret(randomBytes), previousSecret, previousUntil: at + ROTATION_MS }
    const row = await storage.changeWebhook(environment.id, id, change, audit(id))
    return withSecret(foundOr(row, NO_WEBHOOK), publicUrl())
  })

  serve('removeWebhook', async ({ params: { webhookId: id }, environment, audit }) => {
    const row = await storage.removeWebhook(environment.id, id, audit(id))
    return toWebhook(foundOr(row, NO_WEBHOOK), publicUrl())
  })

  serve('testWebhook', async ({ params: { webhookId }, environment, at, audit }) => {
    const { disabledAt, environmentId } = await find(environment, webhookId)
    if (disabledAt !== null) return refuse('conflict', 'The webhook is disabled')
    const data = JSON.stringify({ environmentId, reason: 'Test message sent by an operator' })
    const delivery = { id: uuidv7(at), webhookId, environmentId, type: 'webhook.test', createdAt: at, data }
    const row = await storage.sendToWebhook(delivery, audit(webhookId))
    work.wake('deliver_webhook')
    return toDelivery(row)
  })

  serve('listDeliveries', async ({ params, query: { status }, environment, paging }) => {
    const { id, environmentId } = await find(environment, params.webhookId)
    return listById(paging, (page) => storage.listDeliveries(environmentId, id, { status }, page), toDelivery)
  })

  serve('redeliver', async ({ params, environment, at, audit }) => {
    const { webhookId } = params
    const deliveryId = params.deliveryId.toLowerCase()
    await find(environment, webhookId)
    const entries = audit(webhookId, { deliveryId })
    const row = foundOr(await storage.redeliver(environment.id, webhookId, deliveryId, at, entries), NO_DELIVERY)
    if (row === 'waiting') return refuse('conflict', 'The delivery is already waiting to be sent')
    work.wake('deliver_webhook')
    return toDelivery(row)
  })

  async function find(environment: { id: string }, id: string): Promise<WebhookRow> {
    return foundOr(await storage.findWebhook(environment.id, id), NO_WEBHOOK)
  }

  async function checkMember(environmentId: string, url: string): Promise<void> {
    if (deps.config.smtpUrl === null) throw refuse('conflict', 'This server sends no mail: TACHO_SMTP_URL is not set')
    const address = mailAddressOf(url)
    if (address !== null && (await storage.isMemberAt(environmentId, address))) return
    throw refuseField('url', 'must be mailto: and the address of a member of the workspace')
  }

  /** Refused addresses are logged: they may be attempts to reach the internal network. */
  async function checkUrl(
    environmentId: string,
    url: string,
    format: WebhookFormat,
    auditRefused: (detail: object) => AuditEntry[],
  ): Promise<void> {
    if (format === 'mail') return checkMember(environmentId, url)
    const fault = await checkWebhookUrl(url)
    if (fault !== null) {
      await storage.appendAudit(auditRefused({ host: hostOf(url), reason: fault }))
      throw refuseField('url', fault)
    }
    const wrong = addressFault(format, url)
    if (wrong !== null) throw refuseField('url', wrong)
  }
}

/** Paths and queries of webhook addresses often contain secrets. */
function hostOf(url: string): string | null {
  return URL.parse(url)?.host || null
}

function switched(enabled: boolean | undefined, now: number): WebhookPatch {
  if (enabled === undefined) return {}
  return { disabledAt: enabled ? null : now, disabledReason: null }
}

function withSecret(row: WebhookRow, base: string): CreatedWebhook {
  return { ...toWebhook(row, base), secret: row.secret }
}

function checkShowsInput(format: WebhookFormat, showsInput: boolean | undefined): void {
  if (showsInput && !INPUT_FORMATS.includes(format))
    throw refuseField('showsInput', 'needs the format slack, teams or mail')
}

function checkSigningSecret(format: WebhookFormat, secret: string | null | undefined): void {
  if (secret && format !== 'slack') throw refuseField('signingSecret', 'is for webhooks with the format slack')
}

function secretDetail({ signingSecret }: { signingSecret?: string | null }): { signingSecret?: string } {
  if (signingSecret === undefined) return {}
  return { signingSecret: signingSecret === null ? 'removed' : 'set' }
}
