import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/access.ts'
import {
  AskedSlackLink,
  OwnSlackLinkParams,
  SlackLink,
  SlackLinkCode,
  SlackLinkList,
  SlackLinkPage,
  SlackLinkParams,
} from './slack-link.ts'
import { WebhookParams } from './webhook.ts'
import { ListQuery } from '../tenants/workspace.ts'

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
