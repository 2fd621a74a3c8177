/** Links of Slack users to accounts. A Slack user decides as the linked person, with the roles that person has then. */
import Type, { type Static } from 'typebox'
import { id, nextCursor, text, time, uuid } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'

/** Below the prefix of no API: Slack calls it, with its own signature. */
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

export const SlackLinkPage = Type.Object({ items: Type.Array(SlackLink), nextCursor }, { $id: 'SlackLinkPage' })
export type SlackLinkPage = Static<typeof SlackLinkPage>

export const SlackLinkList = Type.Object(
  { items: Type.Array(SlackLink, { description: `The newest ${LIMITS.slackLinksOfAccount}` }) },
  { $id: 'SlackLinkList' },
)
export type SlackLinkList = Static<typeof SlackLinkList>

export const SlackLinkCode = Type.Object(
  { code: text(LIMITS.credentialChars, 'The part of the link after its last dot') },
  { $id: 'SlackLinkCode', examples: [{ code: 'tacho-slack_0123456789abcdef_0123' }] },
)
export type SlackLinkCode = Static<typeof SlackLinkCode>

export const AskedSlackLink = Type.Object(
  { ...slackUser, expiresAt: time('When the code expires') },
  { $id: 'AskedSlackLink', description: 'The Slack user who pressed a button and got the code' },
)
export type AskedSlackLink = Static<typeof AskedSlackLink>

export const SlackLinkParams = Type.Object({
  environmentId: uuid('Environment id'),
  webhookId: uuid('Webhook id'),
  linkId: id(36, 'Link id'),
})

export const OwnSlackLinkParams = Type.Object({ linkId: id(36, 'Link id') })
