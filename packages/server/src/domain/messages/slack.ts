import { createHmac } from 'node:crypto'
import type { Decision } from '@tacho/contract/approvals/approval.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { AskedSlackLink, SlackLink } from '@tacho/contract/messages/slack-link.ts'
import { parsed } from '@tacho/contract/record/payload-reader.ts'
import Type, { type Static } from 'typebox'
import { approvalData, type ApprovalRow } from '../../storage/approvals/approvals.ts'
import type { SlackLinkRow, SlackUser } from '../../storage/messages/messages.ts'
import { isoTime } from '../../storage/engine/times.ts'
import { sameHash } from '../people/credential.ts'
import { validatorOf } from '../web/schema-faults.ts'
import { pick } from '../web/shown.ts'
import { isStorableText } from '../web/text.ts'
import { SLACK_BUTTONS, slackMessage, slackText, UNSEEN_MARK, type WebhookPlace } from './webhook-formats.ts'

const SECOND_MS = 1_000
/** Older requests are refused, as Slack recommends against replays. */
const AGE_SECONDS = 300
const TIMESTAMP = /^[0-9]{1,12}$/
const SIGNATURE = /^v0=[0-9a-f]{64}$/

export type SlackSignature = Record<'timestamp' | 'signature', string>

export function slackSignatureOf(
  { timestamp, signature }: Record<keyof SlackSignature, unknown>,
  now: number,
): SlackSignature | null {
  if (typeof timestamp !== 'string' || typeof signature !== 'string') return null
  if (!TIMESTAMP.test(timestamp) || !SIGNATURE.test(signature)) return null
  return Math.abs(now / SECOND_MS - Number(timestamp)) <= AGE_SECONDS ? { timestamp, signature } : null
}

/** https://docs.slack.dev/authentication/verifying-requests-from-slack */
export function isSignedBySlack(secret: string, { timestamp, signature }: SlackSignature, body: Buffer): boolean {
  const expected = `v0=${createHmac('sha256', secret).update(`v0:${timestamp}:`).update(body).digest('hex')}`
  return sameHash(expected, signature)
}

export interface SlackPress extends SlackUser {
  approvalId: string
  /** The person saw no input, because none was recorded when the message was sent. */
  sawNoInput?: true
  decision: Decision
  responseUrl: string
}

const ID_CHARS = 64
const NAME_CHARS = 80
const slackId = Type.String({ minLength: 1, maxLength: ID_CHARS })
const Names = Type.Object({ id: slackId, domain: Type.Optional(Type.String()), name: Type.Optional(Type.String()) })
const Pressed = Type.Object({
  type: Type.Literal('block_actions'),
  /** Null if the app belongs to a whole organization; then `enterprise` is set. */
  team: Type.Optional(Type.Union([Names, Type.Null()])),
  enterprise: Type.Optional(Type.Union([Names, Type.Null()])),
  user: Type.Object({ id: slackId, username: Type.Optional(Type.String()), name: Type.Optional(Type.String()) }),
  actions: Type.Array(Type.Object({ action_id: Type.String(), value: Type.Optional(Type.String()) }), { maxItems: 25 }),
  response_url: Type.String({ maxLength: LIMITS.webhookUrlChars }),
})

const DECISIONS = new Map<string, Decision>([
  [SLACK_BUTTONS.approve, 'APPROVED'],
  [SLACK_BUTTONS.reject, 'REJECTED'],
])

export function slackPressOf(body: Buffer): SlackPress | null {
  const payload = parsed(new URLSearchParams(body.toString()).get('payload'))
  if (!validatorOf(Pressed).Check(payload)) return null
  const { team, enterprise, user, actions, response_url: responseUrl } = payload as Static<typeof Pressed>
  const from = team ?? enterprise
  const [action] = actions
  const decision = DECISIONS.get(action?.action_id ?? '')
  if (!from || decision === undefined || action?.value === undefined) return null
  const [approvalId = '', mark] = action.value.toLowerCase().split(' ')
  const named = { teamId: from.id, userId: user.id }
  if (!isStorableText(named.teamId) || !isStorableText(named.userId)) return null
  return {
    ...named,
    teamName: nameOf(from.domain ?? from.name),
    userName: nameOf(user.username ?? user.name),
    approvalId,
    ...(mark === UNSEEN_MARK && { sawNoInput: true }),
    decision,
    responseUrl,
  }
}

function nameOf(text = ''): string {
  return isStorableText(text) ? Array.from(text).slice(0, NAME_CHARS).join('') : ''
}

/** The code follows the #, which browsers never send to a server. */
export function slackLinkAddress(place: string, webhookId: string, code: string): string {
  return `${place}/slack-link#${webhookId}.${code}`
}

export function onlyForThem(text: string): object {
  return { response_type: 'ephemeral', replace_original: false, text }
}

export function askedText(address: string): string {
  const link = `<${slackText(address, LIMITS.webhookUrlChars)}|open Tacho, sign in and confirm>`
  const minutes = LIMITS.slackCodeMs / 60_000
  return `Nothing is decided yet: your Slack account is not linked to an account of Tacho. To link it, ${link}. The link works once, within ${minutes} minutes. Then press again.`
}

const NOT_SEEN = {
  mismatch: 'the recorded input does not match the input that would run',
  changed: 'the input was recorded after this message',
} as const

export function notSeenText(differs: keyof typeof NOT_SEEN, address: string): string {
  const link = `<${slackText(address, LIMITS.webhookUrlChars)}|Open it in the console>`
  return `Nothing is decided: ${NOT_SEEN[differs]}. ${link} to look at it.`
}

const STATES: Record<ApprovalRow['status'], string> = {
  PENDING: 'is pending',
  APPROVED: 'was approved',
  REJECTED: 'was rejected',
  EXPIRED: 'expired undecided',
}

export function refusedText({ status, deciderName, importedAt }: ApprovalRow): string {
  if (importedAt !== null) return 'Nothing was changed: the request was imported, and no client waits for it.'
  const who = deciderName === null ? '' : ` by ${slackText(deciderName, NAME_CHARS)}`
  return `Nothing was changed: the request ${STATES[status]}${who} before.`
}

export function outcomeMessage(row: ApprovalRow, agentName: string | null, place: WebhookPlace | null): object {
  const type = row.status === 'EXPIRED' ? 'approval.expired' : 'approval.decided'
  const data = approvalData(row, agentName)
  return { replace_original: true, ...slackMessage({ id: row.id, type, createdAt: row.createdAt, data, place }) }
}

export function toSlackLink(row: SlackLinkRow): SlackLink {
  const { operatorId: id, email, changedAt } = row
  const users = pick(row, 'id', 'environmentId', 'webhookId', 'teamId', 'teamName', 'userId', 'userName')
  return { ...users, operator: { id, email }, linkedAt: isoTime(changedAt) }
}

export function toAskedSlackLink(row: SlackUser & { codeExpiresAt: number }): AskedSlackLink {
  return { ...pick(row, 'teamId', 'teamName', 'userId', 'userName'), expiresAt: isoTime(row.codeExpiresAt) }
}
