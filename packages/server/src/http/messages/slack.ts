/**
 * Checks the signature of a request before it reads anything else in it. A linked Slack user decides as their account.
 */
import { randomBytes, hash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import { SLACK_PATH } from '@tacho/contract/messages/slack-link.ts'
import { newSlackCode } from '../../domain/people/credential.ts'
import {
  askedText,
  isSignedBySlack,
  notSeenText,
  onlyForThem,
  outcomeMessage,
  refusedText,
  slackLinkAddress,
  slackPressOf,
  slackSignatureOf,
  type SlackPress,
  toAskedSlackLink,
  toSlackLink,
} from '../../domain/messages/slack.ts'
import { pick } from '../../domain/web/shown.ts'
import { isUuid, uuidv7 } from '../../storage/engine/uuid.ts'
import type { EnvironmentRow } from '../../storage/tenants/tenants.ts'
import type { WebhookRow } from '../../storage/messages/messages.ts'
import type { ApprovalReader } from '../approvals/approval-reader.ts'
import type { Deps } from '../web/deps.ts'
import { holderOf, createRateLimit, limitRate } from '../tenants/rate-limit.ts'
import { admitActor, personActor } from '../people/access.ts'
import { entryOf } from '../people/audit.ts'
import { createDecide, NOT_THEM } from '../approvals/decide.ts'
import type { OperatorLimits } from '../people/attempts.ts'
import { readBody } from '../web/read-body.ts'
import { isRefusal, refuse, replyError, foundOr } from '../web/reply-error.ts'
import { Shares } from '../../domain/tenants/shares.ts'
import type { Holder } from '../../storage/engine/turns-by-workspace.ts'
import { listById } from '../web/paging.ts'
import { sessionOf } from '../people/sessions.ts'
import { NO_WEBHOOK } from './webhooks.ts'
import type { OperatorDeps, OperatorRequestOf } from '../web/operator-serve.ts'

const FORM = 'application/x-www-form-urlencoded'
/** One refusal for all reasons, so that strangers learn nothing. */
const NOT_SIGNED = refuse('unauthenticated', 'The request is not signed by the Slack app of this webhook')
const NOT_ALLOWED = 'Nothing is decided: the linked account needs the role approver in this environment.'
const FIRST = 'Your approval is stored. Another person must approve it too.'
const WITHDRAWN = 'Your decision is stored, and nothing will run: the client withdrew the request.'
const NO_APPROVAL = 'Nothing is decided: the request does not exist any more.'
/** Limits of answers that are being sent. Beyond them, no answer is sent; the next press shows the decision. */
const ANSWERS = { most: 200, ofWorkspace: 40, ofCredential: 20 }

declare module 'fastify' {
  interface FastifyRequest {
    slackWebhook: WebhookRow | null
  }
}

export function slackRoutes(
  app: FastifyInstance,
  deps: Deps,
  { feed, current }: ApprovalReader,
  operatorLimits: OperatorLimits,
): void {
  const { storage, memory, now, publicUrl, sendToWebhook } = deps
  const { slackRequestsPerSecond: requestsPerSecond } = LIMITS
  const limit = createRateLimit({ requestsPerSecond, nodes: () => storage.nodes(), subject: 'webhook' })
  const decide = createDecide(deps, feed)
  const { access } = OPERATOR_ROUTES.decideApproval
  const answers = new Shares(ANSWERS)

  app.decorateRequest('slackWebhook', null)
  app.route({
    method: 'POST',
    url: SLACK_PATH.replaceAll(/\{(\w+)\}/g, ':$1'),
    onRequest: async (request, reply) => {
      const refusal = operatorLimits.byAddress(request, reply) ?? (await admit(request, reply))
      if (refusal) return replyError(request, reply, refusal)
    },
    handler: async (request, reply) => {
      const { slackWebhook: webhook, bodyBytes } = request
      const press = bodyBytes && slackPressOf(bodyBytes)
      const environment = webhook && press ? (await storage.findTenant(webhook.environmentId)).environment : null
      if (webhook && press && environment) {
        const holder = { workspace: environment.workspaceId, credential: webhook.id }
        answer(webhook, holder, press, await messagesTo(press, webhook, environment, request))
      }
      // Slack shows an error for anything else.
      return reply.code(200).send('')
    },
  })

  async function admit(request: FastifyRequest, reply: FastifyReply) {
    const { environmentId = '', webhookId = '' } = request.params as Record<string, string>
    const { 'x-slack-request-timestamp': timestamp, 'x-slack-signature': slackSignature } = request.headers
    const signature = slackSignatureOf({ timestamp, signature: slackSignature }, now())
    if (signature === null || !isUuid(environmentId) || !isUuid(webhookId)) return NOT_SIGNED
    const webhook = await storage.findWebhook(environmentId.toLowerCase(), webhookId.toLowerCase())
    if (!webhook || webhook.signingSecret === null || webhook.disabledAt !== null) return NOT_SIGNED
    const body = await readBody(request.raw, reply.raw, {
      maxBytes: LIMITS.slackBodyBytes,
      memory,
      holder: holderOf(request),
      binaryType: FORM,
    })
    if (isRefusal(body)) return body
    if (!isSignedBySlack(webhook.signingSecret, signature, body)) return NOT_SIGNED
    request.slackWebhook = webhook
    request.bodyBytes = body
    return limitRate(limit, reply, webhook.id)
  }

  async function messagesTo(
    press: SlackPress,
    webhook: WebhookRow,
    environment: EnvironmentRow,
    request: FastifyRequest,
  ): Promise<object[]> {
    const { environmentId, id: webhookId } = webhook
    const person = await storage.findLinkedPerson(environmentId, webhookId, press)
    if (person === null) return [onlyForThem(await askForLink(press, webhook, environment))]
    const { scope, refusal } = await admitActor(storage, personActor(person, person), access, { environmentId })
    const { approvalId, decision } = press
    const user = pick(press, 'teamId', 'teamName', 'userId', 'userName')
    const by = { scope, request, slack: { webhookId, ...user } }
    if (refusal) {
      const tooMany = operatorLimits.ofRefusedChanges(person.id)
      const target = { kind: 'approval', id: isUuid(approvalId) ? approvalId : '' }
      const detail = { needs: access, slack: by.slack }
      if (!tooMany) await storage.appendAudit([entryOf(by, now(), 'approval.decide.refused', target, detail)])
      return [onlyForThem(NOT_ALLOWED)]
    }
    const row = isUuid(approvalId) ? await current.find(environmentId, approvalId) : null
    const seen = new Map(press.sawNoInput ? [[approvalId, null]] : [])
    const [decided] = row ? await decide(by, [row], { decision }, seen) : []
    if (!decided?.approval) return [onlyForThem(NO_APPROVAL)]
    const { approval, agentName, outcome } = decided
    if (outcome === 'changed' || outcome === 'mismatch')
      return [onlyForThem(notSeenText(outcome, `${placeOf(environment)}/approvals/${approvalId}`))]
    if (outcome === 'same_person' || outcome === 'runs_agent' || outcome === 'no_person')
      return [onlyForThem(`Nothing is decided. ${NOT_THEM[outcome]}.`)]
    if (outcome === 'first') return [onlyForThem(FIRST)]
    const place = { environment: environment.name, url: placeOf(environment) }
    const late = outcome === 'decided' ? [] : [onlyForThem(refusedText(approval))]
    if (outcome === 'decided' && approval.withdrawnAt !== null) late.push(onlyForThem(WITHDRAWN))
    return approval.status === 'PENDING' ? late : [outcomeMessage(approval, agentName, place), ...late]
  }

  const placeOf = ({ workspaceId, id }: EnvironmentRow) => `${publicUrl()}/w/${workspaceId}/${id}`

  async function askForLink(
    press: SlackPress,
    { environmentId, id: webhookId }: WebhookRow,
    environment: EnvironmentRow,
  ): Promise<string> {
    const changedAt = now()
    const { text: code, hash: codeHash } = newSlackCode(randomBytes)
    const asked = await storage.askSlackLink({
      id: uuidv7(changedAt),
      environmentId,
      webhookId,
      ...pick(press, 'teamId', 'teamName', 'userId', 'userName'),
      codeHash,
      codeExpiresAt: changedAt + LIMITS.slackCodeMs,
      changedAt,
    })
    if (asked !== 'asked') return NOT_ASKED[asked]
    return askedText(slackLinkAddress(placeOf(environment), webhookId, code))
  }

  /** Not awaited, because Slack waits at most three seconds. */
  function answer(webhook: WebhookRow, holder: Holder, { responseUrl }: SlackPress, messages: object[]): void {
    // A request must not make the server call another host.
    if (URL.parse(responseUrl)?.origin !== new URL(webhook.url).origin || !answers.take(holder, 1)) {
      app.log.warn({ webhookId: webhook.id }, 'could not answer in Slack')
      return
    }
    void send().finally(() => answers.add(holder, -1))

    async function send(): Promise<void> {
      for (const message of messages) {
        const headers = { 'content-type': 'application/json', 'user-agent': 'Tacho-Webhooks' }
        const sent = await sendToWebhook({ url: responseUrl, headers, body: JSON.stringify(message) })
        if (!sent.ok) app.log.warn({ webhookId: webhook.id, error: sent.error }, 'could not answer in Slack')
      }
    }
  }
}

const NOT_ASKED = {
  linked: 'Nothing is decided yet: your Slack account was linked just now. Press again.',
  gone: NO_APPROVAL,
  too_many: `Nothing is decided: ${LIMITS.slackLinks} Slack users are linked already. An admin can remove some.`,
  too_often: 'Nothing is decided: too many people asked for a link just now. Press again in a minute.',
} as const

const NO_CODE = refuse('not_found', 'The code is unknown, used or expired. Press the button in Slack again')
const NO_LINK = refuse('not_found', 'The link does not exist')

export function slackLinksRoutes({ serve, storage }: OperatorDeps): void {
  serve('openSlackLink', async ({ request, ...linkRequest }) => {
    const { asked } = await findCode(linkRequest)
    sessionOf(request)
    return toAskedSlackLink(asked)
  })

  serve('confirmSlackLink', async ({ request, audit, ...linkRequest }) => {
    const { of, asked } = await findCode(linkRequest)
    const { operator } = sessionOf(request)
    const { teamId, userId, userName } = asked
    const [entry] = audit('', { webhookId: of.webhookId, teamId, userId, userName })
    return toSlackLink(foundOr(await storage.confirmSlackLink(of, operator.id, linkRequest.at, entry), NO_CODE))
  })

  serve('listSlackLinks', async ({ params: { webhookId }, environment: { id }, paging }) => {
    foundOr(await storage.findWebhook(id, webhookId), NO_WEBHOOK)
    return listById(paging, (page) => storage.listSlackLinks(id, webhookId, page), toSlackLink)
  })

  serve('removeSlackLink', async ({ params: { webhookId, linkId }, environment, audit }) => {
    const id = linkId.toLowerCase()
    return toSlackLink(
      foundOr(await storage.removeSlackLink(environment.id, webhookId, id, audit(id, { webhookId })), NO_LINK),
    )
  })

  serve('listOwnSlackLinks', async ({ request }) => {
    const rows = await storage.listSlackLinksOf(sessionOf(request).operator.id)
    return { items: rows.map(toSlackLink) }
  })

  serve('removeOwnSlackLink', async ({ params, request, audit }) => {
    const { operator } = sessionOf(request)
    const id = params.linkId.toLowerCase()
    return toSlackLink(foundOr(await storage.removeSlackLinkOf(operator.id, id, audit(id)), NO_LINK))
  })

  async function findCode({
    params: { webhookId },
    body,
    environment: { id: environmentId },
    at,
  }: Pick<OperatorRequestOf<'openSlackLink'>, 'params' | 'body' | 'environment' | 'at'>) {
    const of = { environmentId, webhookId, codeHash: hash('sha256', body.code) }
    const asked = await storage.findSlackCode(environmentId, webhookId, of.codeHash, at)
    return { of, asked: foundOr(asked, NO_CODE) }
  }
}
