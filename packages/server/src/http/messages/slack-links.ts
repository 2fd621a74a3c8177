import { hash } from 'node:crypto'
import { toAskedSlackLink, toSlackLink } from '../../domain/messages/slack.ts'
import { listById } from '../web/paging.ts'
import { found, refuse } from '../web/reply-error.ts'
import { sessionOf } from '../people/sessions.ts'
import { NO_WEBHOOK } from './webhooks.ts'
import type { OperatorDeps, OperatorRequestOf } from '../web/serve.ts'

const NO_CODE = refuse('not_found', 'The code is unknown, used or expired. Press the button in Slack again')
const NO_LINK = refuse('not_found', 'The link does not exist')

export function slackLinksRoutes({ serve, storage }: OperatorDeps): void {
  serve('openSlackLink', async ({ request, ...given }) => {
    const { asked } = await findCode(given)
    sessionOf(request)
    return toAskedSlackLink(asked)
  })

  serve('confirmSlackLink', async ({ request, audit, ...given }) => {
    const { of, asked } = await findCode(given)
    const { operator } = sessionOf(request)
    const { teamId, userId, userName } = asked
    const [entry] = audit('', { webhookId: of.webhookId, teamId, userId, userName })
    return toSlackLink(found(await storage.confirmSlackLink(of, operator.id, given.at, entry), NO_CODE))
  })

  serve('listSlackLinks', async ({ params: { webhookId }, environment: { id }, walk }) => {
    found(await storage.findWebhook(id, webhookId), NO_WEBHOOK)
    return listById(walk, (page) => storage.listSlackLinks(id, webhookId, page), toSlackLink)
  })

  serve('removeSlackLink', async ({ params: { webhookId, linkId }, environment, audit }) => {
    const id = linkId.toLowerCase()
    return toSlackLink(
      found(await storage.removeSlackLink(environment.id, webhookId, id, audit(id, { webhookId })), NO_LINK),
    )
  })

  serve('listOwnSlackLinks', async ({ request }) => {
    const rows = await storage.listSlackLinksOf(sessionOf(request).operator.id)
    return { items: rows.map(toSlackLink) }
  })

  serve('removeOwnSlackLink', async ({ params, request, audit }) => {
    const { operator } = sessionOf(request)
    const id = params.linkId.toLowerCase()
    return toSlackLink(found(await storage.removeSlackLinkOf(operator.id, id, audit(id)), NO_LINK))
  })

  async function findCode({
    params: { webhookId },
    body,
    environment: { id: environmentId },
    at,
  }: Pick<OperatorRequestOf<'openSlackLink'>, 'params' | 'body' | 'environment' | 'at'>) {
    const of = { environmentId, webhookId, codeHash: hash('sha256', body.code) }
    const asked = await storage.findSlackCode(environmentId, webhookId, of.codeHash, at)
    return { of, asked: found(asked, NO_CODE) }
  }
}
