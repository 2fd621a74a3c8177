import { hash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { toAskedSlackLink, toSlackLink } from '../../domain/slack.ts'
import { byId, listPage } from '../paging.ts'
import { refuse } from '../reply-error.ts'
import { environmentOf } from './access.ts'
import { auditOf } from './audit.ts'
import { sessionOf } from './sessions.ts'
import type { OperatorDeps } from './serve.ts'

const NO_CODE = refuse('not_found', 'The code is unknown, used or expired. Press the button in Slack again')
const NO_LINK = refuse('not_found', 'The link does not exist')
const NO_WEBHOOK = refuse('not_found', 'The webhook does not exist')

export function slackLinksRoutes({ serve, storage, cursors, now }: OperatorDeps): void {
  serve('openSlackLink', async ({ params, body, request }) => {
    const { asked } = await findCode(request, params.webhookId, body.code)
    sessionOf(request)
    return toAskedSlackLink(asked)
  })

  serve('confirmSlackLink', async ({ params, body, request }) => {
    const { of, asked } = await findCode(request, params.webhookId, body.code)
    const { operator } = sessionOf(request)
    const { teamId, userId, userName } = asked
    const detail = { webhookId: of.webhookId, teamId, userId, userName }
    const audit = auditOf(request, now(), 'slack_link.confirm', { kind: 'slack_link', id: '' }, detail)
    const row = await storage.confirmSlackLink(of, operator.id, now(), audit)
    return row ? toSlackLink(row) : NO_CODE
  })

  serve('listSlackLinks', async ({ params, query, environment }) => {
    const webhook = await storage.findWebhook(environment.id, params.webhookId.toLowerCase())
    if (webhook === null) return NO_WEBHOOK
    return listPage(cursors, query, {
      of: ['slack-links', webhook.id],
      read: (page) => storage.listSlackLinks(webhook.environmentId, webhook.id, page),
      toItem: toSlackLink,
      placeOf: byId,
    })
  })

  serve('removeSlackLink', async ({ params, request, environment }) => {
    const [webhookId, id] = [params.webhookId.toLowerCase(), params.linkId.toLowerCase()]
    const audit = [auditOf(request, now(), 'slack_link.remove', { kind: 'slack_link', id }, { webhookId })]
    const row = await storage.removeSlackLink(environment.id, webhookId, id, audit)
    return row ? toSlackLink(row) : NO_LINK
  })

  serve('listOwnSlackLinks', async ({ request }) => {
    const rows = await storage.listSlackLinksOf(sessionOf(request).operator.id)
    return { items: rows.map(toSlackLink) }
  })

  serve('removeOwnSlackLink', async ({ params, request }) => {
    const { operator } = sessionOf(request)
    const id = params.linkId.toLowerCase()
    const audit = [auditOf(request, now(), 'slack_link.remove', { kind: 'slack_link', id })]
    const row = await storage.removeSlackLinkOf(operator.id, id, audit)
    return row ? toSlackLink(row) : NO_LINK
  })

  async function findCode(request: FastifyRequest, webhookId: string, code: string) {
    const environmentId = environmentOf(request).id
    const of = { environmentId, webhookId: webhookId.toLowerCase(), codeHash: hash('sha256', code) }
    const asked = await storage.findSlackCode(environmentId, of.webhookId, of.codeHash, now())
    if (asked === null) throw NO_CODE
    return { of, asked }
  }
}
