import { randomBytes } from 'node:crypto'
import { includesRole } from '@tacho/contract/operator/access.ts'
import type { CreatedWebhook, WebhookFormat } from '@tacho/contract/operator/webhook.ts'
import type { FastifyRequest } from 'fastify'
import { uuidv7 } from '../../storage/uuid.ts'
import { newWebhookSecret, toDelivery, toWebhook } from '../../domain/webhook.ts'
import { mailAddressOf } from '../../domain/mail.ts'
import { addressFault } from '../../domain/webhook-formats.ts'
import type { AuditEntry } from '../../storage/audit.ts'
import type { WebhookPatch, WebhookRow } from '../../storage/webhooks.ts'
import { refuse } from '../reply-error.ts'
import { environmentOf } from './access.ts'
import { auditOf } from './audit.ts'
import { refuseField, checkTexts } from '../field.ts'
import { INPUT_FORMATS, WEBHOOK_EVENTS } from '@tacho/contract/words.ts'
import { listPage, byId } from '../paging.ts'
import type { OperatorDeps } from './serve.ts'

const NO_WEBHOOK = refuse('not_found', 'The webhook does not exist')
const NO_DELIVERY = refuse('not_found', 'The delivery does not exist')
/** The previous secret also signs for this long, so that receivers can switch. */
const ROTATION_MS = 24 * 60 * 60 * 1000

export function webhooksRoutes(deps: OperatorDeps): void {
  const { serve, storage, cursors, now, work, checkWebhookUrl, publicUrl } = deps

  serve('listWebhooks', ({ query, environment: { id }, workspace, actor }) => {
    const role = actor.roleIn(workspace.id)
    const toItem = (row: WebhookRow) => toWebhook(row, publicUrl(), role !== null && includesRole(role, 'admin'))
    return listPage(cursors, query, {
      of: ['webhooks', id],
      read: (page) => storage.listWebhooks(id, page),
      toItem,
      placeOf: byId,
    })
  })

  serve('createWebhook', async ({ body, request, environment: { id: environmentId } }) => {
    const createdAt = now()
    const { url, description = '', format = 'standard', events = [...WEBHOOK_EVENTS], signingSecret = null } = body
    const { showsInput = false } = body
    const id = uuidv7(createdAt)
    checkTexts({ description })
    await checkUrl(request, 'create', id, url, format)
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
    const given = { url, description, format, events, secret, signingSecret, showsInput }
    const row: WebhookRow = { id, environmentId, ...given, createdAt, ...unused }
    const audit = audited(request, 'create', id, {
      host: hostOf(url),
      format,
      events,
      showsInput,
      ...secretDetail(body),
    })
    if ((await storage.createWebhook(row, audit)) === 'too_many') {
      return refuse('conflict', 'The environment has reached its limit of webhooks')
    }
    return withSecret(row, publicUrl())
  })

  serve('changeWebhook', async ({ params, body, request, environment }) => {
    const { url, description, events, enabled, signingSecret, showsInput } = body
    const id = params.webhookId.toLowerCase()
    checkTexts({ description })
    if (url !== undefined || signingSecret || showsInput) {
      const { format } = await find(request, id)
      if (url !== undefined) await checkUrl(request, 'change', id, url, format)
      checkSigningSecret(format, signingSecret)
      checkShowsInput(format, showsInput)
    }
    const host = url === undefined ? undefined : hostOf(url)
    const detail = { description, events, enabled, host, showsInput, ...secretDetail(body) }
    const change = { url, description, events, signingSecret, showsInput, ...switched(enabled, now()) }
    const row = await storage.changeWebhook(environment.id, id, change, audited(request, 'change', id, detail))
    return row ? toWebhook(row, publicUrl()) : NO_WEBHOOK
  })

  serve('rotateWebhookSecret', async ({ params, request }) => {
    const webhook = await find(request, params.webhookId)
    const secret = newWebhookSecret(randomBytes)
    const change = { secret, previousSecret: webhook.secret, previousUntil: now() + ROTATION_MS }
    const audit = audited(request, 'rotate_secret', webhook.id)
    const row = await storage.changeWebhook(webhook.environmentId, webhook.id, change, audit)
    return row ? withSecret(row, publicUrl()) : NO_WEBHOOK
  })

  serve('removeWebhook', async ({ params, request, environment }) => {
    const id = params.webhookId.toLowerCase()
    const row = await storage.removeWebhook(environment.id, id, audited(request, 'remove', id))
    return row ? toWebhook(row, publicUrl()) : NO_WEBHOOK
  })

  serve('testWebhook', async ({ params, request }) => {
    const webhook = await find(request, params.webhookId)
    if (webhook.disabledAt !== null) return refuse('conflict', 'The webhook is disabled')
    const createdAt = now()
    const { id: webhookId, environmentId } = webhook
    const data = JSON.stringify({ environmentId, reason: 'Test message sent by an operator' })
    const delivery = {
      id: uuidv7(createdAt),
      webhookId,
      environmentId,
      type: 'webhook.test',
      createdAt,
      data,
    }
    const row = await storage.sendToWebhook(delivery, audited(request, 'test', webhookId))
    work.wake('deliver_webhook')
    return toDelivery(row)
  })

  serve('listDeliveries', async ({ params, query, request }) => {
    const webhook = await find(request, params.webhookId)
    const { status } = query
    return listPage(cursors, query, {
      of: ['deliveries', webhook.id, status],
      read: (page) => storage.listDeliveries(webhook.environmentId, webhook.id, { status }, page),
      toItem: toDelivery,
      placeOf: byId,
    })
  })

  serve('redeliver', async ({ params, request }) => {
    const webhook = await find(request, params.webhookId)
    const id = params.deliveryId.toLowerCase()
    const audit = audited(request, 'redeliver', webhook.id, { deliveryId: id })
    const row = await storage.redeliver(webhook.environmentId, webhook.id, id, now(), audit)
    if (row === null) return NO_DELIVERY
    if (row === 'waiting') return refuse('conflict', 'The delivery is already waiting to be sent')
    work.wake('deliver_webhook')
    return toDelivery(row)
  })

  async function find(request: FastifyRequest, id: string): Promise<WebhookRow> {
    const webhook = await storage.findWebhook(environmentOf(request).id, id.toLowerCase())
    if (webhook === null) throw NO_WEBHOOK
    return webhook
  }

  function audited(request: FastifyRequest, verb: string, id: string, detail: object = {}): AuditEntry[] {
    return [auditOf(request, now(), `webhook.${verb}`, { kind: 'webhook', id }, detail)]
  }

  async function checkMember(request: FastifyRequest, url: string): Promise<void> {
    if (deps.config.smtpUrl === null) throw refuse('conflict', 'This server sends no mail: TACHO_SMTP_URL is not set')
    const address = mailAddressOf(url)
    if (address !== null && (await storage.isMemberAt(environmentOf(request).id, address))) return
    throw refuseField('url', 'must be mailto: and the address of a member of the workspace')
  }

  /** Refused addresses are logged: they may be attempts to reach the internal network. */
  async function checkUrl(
    request: FastifyRequest,
    verb: string,
    id: string,
    url: string,
    format: WebhookFormat,
  ): Promise<void> {
    if (format === 'mail') return checkMember(request, url)
    const fault = await checkWebhookUrl(url)
    if (fault !== null) {
      await storage.appendAudit(audited(request, `${verb}.refused`, id, { host: hostOf(url), reason: fault }))
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
