/**
 * Links between Slack users and accounts. A Slack user decides as the linked person, with that person's current roles.
 */
import Type, { type Static } from 'typebox'
import { id, nextCursor, text, time, uuid } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/route.ts'
import { WebhookParams } from './webhook.ts'
import { ListQuery } from '../tenants/workspace.ts'

/** Outside the prefixes of the APIs: Slack calls it, with its own signature. */
export const SLACK_PATH = '/slack/interactions/{environmentId}/{webhookId}'

const slackUser = {
  teamId: Type.String({ description: 'Slack workspace' }),
  teamName: Type.String({ description: 'Its name in its address, as Slack sends it' }),
  userId: Type.String({ description: 'Slack user' }),
  userName: Type.String({ description: 'Their name, as Slack sends it' }),
}

export const SlackLink = Type.Object(
  {
    id: uuid('Link id'),
    environmentId: uuid('Environment of the webhook'),
    webhookId: uuid('Webhook whose messages the Slack user decides'),
    ...slackUser,
    operator: Type.Object(
      { id: Type.String(), email: Type.String() },
      { description: 'The account as which the Slack user decides' },
    ),
    linkedAt: time('When the person confirmed it'),
  },
  { $id: 'SlackLink', description: 'A Slack user who decides as a person, as far as the roles of the person allow' },
)
export type SlackLink = Static<typeof SlackLink>

const SlackLinkPage = Type.Object({ items: Type.Array(SlackLink), nextCursor }, { $id: 'SlackLinkPage' })
type SlackLinkPage = Static<typeof SlackLinkPage>

const SlackLinkList = Type.Object(
  { items: Type.Array(SlackLink, { description: `The newest ${LIMITS.slackLinksOfAccount}` }) },
  { $id: 'SlackLinkList' },
)
type SlackLinkList = Static<typeof SlackLinkList>

const SlackLinkCode = Type.Object(
  { code: text(LIMITS.credentialChars, 'The part of the link after its last dot') },
  { $id: 'SlackLinkCode', examples: [{ code: 'tacho-slack_0123456789abcdef_0123' }] },
)
type SlackLinkCode = Static<typeof SlackLinkCode>

export const AskedSlackLink = Type.Object(
  { ...slackUser, expiresAt: time('When the code expires') },
  { $id: 'AskedSlackLink', description: 'The Slack user who pressed a button and got the code' },
)
export type AskedSlackLink = Static<typeof AskedSlackLink>

const SlackLinkParams = Type.Object({
  environmentId: uuid('Environment id'),
  webhookId: uuid('Webhook id'),
  linkId: id(36, 'Link id'),
})

const OwnSlackLinkParams = Type.Object({ linkId: id(36, 'Link id') })

const common = { tag: 'Webhooks', scopes: [], status: 200 } as const
const byCode = {
  ...common,
  method: 'POST',
  access: 'approver',
  params: WebhookParams,
  body: SlackLinkCode,
  bodyBytes: LIMITS.operatorBodyBytes,
} as const

const LINKS = '/environments/{environmentId}/webhooks/{webhookId}/slack-links'
const OWN = '/me/slack-links'

export const slackLinkRoutes = {
  openSlackLink: {
    ...byCode,
    path: `${LINKS}/open`,
    summary: 'Read which Slack user got a code; changes nothing',
    reply: AskedSlackLink,
    errors: ['forbidden', 'not_found'],
  },
  confirmSlackLink: {
    ...byCode,
    path: `${LINKS}/confirm`,
    audit: { action: 'slack_link.confirm', target: 'slack_link' },
    summary: 'Link the Slack user who got the code to the signed-in person; a code works once',
    reply: SlackLink,
    errors: ['forbidden', 'not_found'],
  },
  listSlackLinks: {
    ...common,
    method: 'GET',
    access: 'admin',
    path: LINKS,
    summary: 'List the Slack users who decide by the messages of a webhook',
    params: WebhookParams,
    query: ListQuery,
    reply: SlackLinkPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  removeSlackLink: {
    ...common,
    method: 'POST',
    access: 'admin',
    path: `${LINKS}/{linkId}/remove`,
    audit: { action: 'slack_link.remove', target: 'slack_link' },
    summary: 'Remove the link of a Slack user to an account',
    params: SlackLinkParams,
    reply: SlackLink,
    errors: ['not_found'],
  },
  listOwnSlackLinks: {
    ...common,
    method: 'GET',
    access: 'signed-in',
    path: OWN,
    summary: "List the Slack users linked to the caller's account",
    reply: SlackLinkList,
    errors: ['forbidden'],
  },
  removeOwnSlackLink: {
    ...common,
    method: 'POST',
    access: 'signed-in',
    path: `${OWN}/{linkId}/remove`,
    audit: { action: 'slack_link.remove', target: 'slack_link' },
    summary: "Remove the link of a Slack user to the caller's account",
    params: OwnSlackLinkParams,
    reply: SlackLink,
    errors: ['forbidden', 'not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
