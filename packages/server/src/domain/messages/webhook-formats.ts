/** Texts of clients stay text: no service reads markup, mentions or links in them. Invisible characters are escaped. */
import {
  firstApprovalText,
  inputCheckText,
  ranBeforeText,
  withdrawnText,
} from '@tacho/contract/approvals/approval-text.ts'
import { approveText, sentenceText } from '@tacho/contract/approvals/sentence-text.ts'
import type { InputCheck, RanBefore } from '@tacho/contract/approvals/operator-approval.ts'
import type { WebhookEvent, WebhookFormat } from '@tacho/contract/messages/webhook.ts'
import type { SentencePart } from '@tacho/contract/approvals/call-sentence.ts'
import type { WithdrawnReason } from '@tacho/contract/engine/words.ts'
import { lookalikes, printable } from '@tacho/contract/engine/shown-text.ts'
import { isMoney, spentText } from './alert.ts'
import { cut } from '../web/text.ts'
import { isoTime } from '../../storage/engine/times.ts'

export interface WebhookPlace {
  environment: string
  url: string
}

export interface WebhookNews {
  id: string
  type: string
  createdAt: number
  data: Record<string, unknown>
  /** Null: the environment was deleted. */
  place: WebhookPlace | null
  hasButtons?: boolean
  /** The webhook shows inputs, but none was recorded when the message was made. */
  isInputMissing?: boolean
}

interface EventLook {
  title: string
  /** Severity in PagerDuty's terms. */
  severity: 'error' | 'warning' | 'info'
  /** Resolves the incident that an earlier event about the same subject triggered. */
  resolves?: true
}

const EVENTS = {
  'approval.requested': { title: 'Approval requested', severity: 'warning' },
  'approval.decided': { title: 'Approval decided', severity: 'info', resolves: true },
  'approval.expired': { title: 'Approval expired undecided', severity: 'warning', resolves: true },
  'approval.withdrawn': { title: 'Approval withdrawn', severity: 'info', resolves: true },
  'issue.opened': { title: 'New issue', severity: 'warning' },
  'issue.regressed': { title: 'An issue came back', severity: 'error' },
  'alert.firing': { title: 'Alert', severity: 'error' },
  'alert.resolved': { title: 'Resolved', severity: 'info', resolves: true },
  'budget.reached': { title: 'Budget', severity: 'warning' },
  'run.failed': { title: 'A run failed', severity: 'error' },
  'run.incomplete': { title: 'Events of a run are missing', severity: 'warning' },
  'webhook.test': { title: 'This is a test', severity: 'info' },
} satisfies Record<WebhookEvent | 'webhook.test', EventLook>
const LOOKS = new Map<string, EventLook>(Object.entries(EVENTS))

const SHOWN = {
  toolName: 'Tool',
  inputInShort: 'Input, masked by the client',
  inputCheck: 'This input',
  ranBefore: 'Ran before',
  withdrawnReason: 'Withdrawn',
  status: 'Decision',
  firstApproval: 'Approved first',
  agentId: 'Agent',
  runId: 'Run',
  policyId: 'Policy',
  deciderName: 'By',
  decidedVia: 'Through',
  decisionReason: 'Reason',
  expiresAt: 'Until',
  detectionType: 'Detector',
  occurrences: 'Occurrences',
  value: 'Value',
  threshold: 'Threshold',
  percent: 'Percent of the budget',
  unpricedCalls: 'Calls without a known cost',
  comparison: 'Compared',
} as const

export function consolePageOf({ data, place }: Pick<WebhookNews, 'data' | 'place'>): string | null {
  if (typeof data['url'] === 'string') return data['url']
  if (place === null) return null
  if (typeof data['approvalId'] === 'string') return `${place.url}/approvals/${data['approvalId']}`
  if (typeof data['issueId'] === 'string') return `${place.url}/issues/${data['issueId']}`
  return typeof data['alertId'] === 'string' ? `${place.url}/alerts` : null
}

/** No format shows more. Texts are cut before the search for lookalike letters, which takes 0.3 s for 64 kB. */
export const ABOUT_CHARS = 4_000
export const FACT_CHARS = 2_000
const SENTENCE_CHARS = 120

type Told = ReturnType<typeof toTold>

/** `about` is the client's text, or one line about the event. */
export function toTold(news: WebhookNews) {
  const { type, data, place } = news
  const newsReason = data['title'] ?? data['reason']
  const about = typeof newsReason === 'string' && newsReason !== '' ? cut(newsReason, ABOUT_CHARS) : null
  const facts = Object.entries(SHOWN)
    .filter(
      ([name]) => data[name] !== null && data[name] !== undefined && (name !== 'unpricedCalls' || data[name] !== 0),
    )
    .map(([name, label]) => ({ label, text: printable(cut(shown(news, name), FACT_CHARS)) }))
  const warnings = [...new Set([about, data['toolName'], data['agentName']].flatMap(warningsOf))]
  const title = LOOKS.get(type)?.title ?? type
  const sentence = sentenceOf(data)
  return {
    title: sentence === '' ? title : `${title}: ${cut(sentence, SENTENCE_CHARS)}`,
    about: about === null ? null : printable(about),
    facts: [
      ...(place ? [{ label: 'Environment', text: printable(place.environment) }] : []),
      ...facts,
      ...(warnings.length > 0
        ? [{ label: 'Letters that look like others', text: printable(cut(warnings.join('; '), FACT_CHARS)) }]
        : []),
    ],
    url: consolePageOf(news),
  }
}

/** The sentence of a message that shows the input. Each value is escaped. */
function sentenceOf({ sentence }: WebhookNews['data']): string {
  return Array.isArray(sentence) ? printable(sentenceText(sentence as SentencePart[])) : ''
}

/** The label of the button that approves. Without a sentence, it names no input. */
function approvedBy({ sentence }: WebhookNews['data'], chars: number): string {
  return Array.isArray(sentence) ? cut(printable(approveText(sentence as SentencePart[])), chars) : 'Approve'
}

const warningsOf = (text: unknown): string[] => (typeof text === 'string' ? lookalikes(cut(text, ABOUT_CHARS)) : [])

function shown({ data, createdAt }: WebhookNews, name: string): string {
  const value = data[name]
  if (name === 'agentId' && typeof data['agentName'] === 'string') return `${data['agentName']} (${String(value)})`
  const isAmount = isMoney(data) && (name === 'value' || name === 'threshold')
  if (name === 'inputCheck') return inputCheckText(value as InputCheck)
  if (name === 'ranBefore') return ranBeforeText(value as RanBefore, createdAt)
  if (name === 'firstApproval') return firstApprovalText(value as { name: string; reason: string | null })
  if (name === 'withdrawnReason') return withdrawnText(value as WithdrawnReason)
  const unpriced = name === 'value' ? Number(data['unpricedCalls'] ?? 0) : 0
  if (isAmount && typeof value === 'number') return spentText(value, unpriced)
  if (name === 'percent' && Number(data['unpricedCalls'] ?? 0) > 0) return `at least ${String(value)}`
  return typeof value === 'string' ? value : JSON.stringify(value)
}

type Shaped = Exclude<WebhookFormat, 'standard' | 'mail'>
export const SHAPES: Record<Shaped, (news: WebhookNews, url: string) => { url: string; body: object }> = {
  slack: (news, url) => ({ url, body: slackMessage(news) }),
  teams: (news, url) => ({ url, body: teamsMessage(toTold(news)) }),
  pagerduty: pagerDutyEvent,
}

/** Slack's limits are 150 characters in a header, 3,000 in a text, 2,000 in a field, 300 in a question, and 10 fields. */
const HEADER_CHARS = 150
const TEXT_CHARS = 2_900
const FIELD_CHARS = 1_900
const QUESTION_CHARS = 250
const FIELDS = 10
const BUTTON_CHARS = 70
const ASKED_CHARS = 90

/**
 * The `action_id` of each button. A button's `value` is the approval's id, followed by a mark if the person saw no
 * input.
 */
export const SLACK_BUTTONS = { approve: 'tacho_approve', reject: 'tacho_reject' } as const

export function slackMessage(news: WebhookNews): object {
  const { title, about, facts, url } = toTold(news)
  // Verbatim: Slack makes no links or mentions of names in it.
  const section = (text: string) => ({ type: 'mrkdwn', text, verbatim: true })
  const plain = (text: string) => ({ type: 'plain_text', text: withoutLinks(text), emoji: false })
  // Slack knows no escape for * _ ~ ` and :emoji:, so a text with them stands in a block without any markup.
  const outside = (text: string, chars: number, label = '') => {
    const shown = slackText(text, chars)
    if (MARKUP.test(text)) return plain(label === '' ? shown : `${label}\n${shown}`)
    return section(label === '' ? shown : `*${label}*\n${shown}`)
  }
  const fields = facts.slice(0, FIELDS).map(({ label, text }) => outside(text, FIELD_CHARS, label))
  return {
    // Text of the notification.
    text: `${withoutLinks(slackText(title, HEADER_CHARS))}${about === null ? '' : `: ${withoutLinks(slackText(about, HEADER_CHARS))}`}`,
    mrkdwn: false,
    blocks: [
      { type: 'header', text: plain(slackText(title, HEADER_CHARS)) },
      ...(about === null ? [] : [{ type: 'section', text: outside(about, TEXT_CHARS) }]),
      ...(fields.length > 0 ? [{ type: 'section', fields }] : []),
      ...buttonsOf(news),
      ...(url === null ? [] : [{ type: 'section', text: section(`<${slackText(url, TEXT_CHARS)}|${OPEN}>`) }]),
    ],
  }
}

export const OPEN = 'Open in the console'

export const UNSEEN_MARK = 'unseen'

function buttonsOf({ type, data, hasButtons = false, isInputMissing = false }: WebhookNews): object[] {
  const { approvalId, toolName } = data
  if (!hasButtons || type !== 'approval.requested' || typeof approvalId !== 'string') return []
  if (data['withdrawnReason']) return []
  const value = isInputMissing ? `${approvalId} ${UNSEEN_MARK}` : approvalId
  const plain = (text: string) => ({ type: 'plain_text', text: withoutLinks(text), emoji: false })
  const button = (act: keyof typeof SLACK_BUTTONS, text: string, more: object) => {
    return { type: 'button', action_id: SLACK_BUTTONS[act], text: plain(text), value, ...more }
  }
  const confirm = {
    title: plain(data['sentence'] ? `${approvedBy(data, ASKED_CHARS)}?` : 'Approve this call?'),
    text: plain(cut(`${printable(String(toolName))} runs once, with the input that was asked for.`, QUESTION_CHARS)),
    confirm: plain('Approve'),
    deny: plain('Cancel'),
  }
  // Approving an input that differs from the shown one needs a second step, in the console.
  const differs = (data['inputCheck'] as InputCheck | undefined)?.result === 'does_not_match'
  const elements = [
    ...(differs ? [] : [button('approve', approvedBy(data, BUTTON_CHARS), { style: 'primary', confirm })]),
    button('reject', 'Reject', { style: 'danger' }),
  ]
  return [{ type: 'actions', elements }]
}

/** A mark at the edge of a word, or first in a line. */
const MARKUP = /(?:^|[^\p{L}\p{N}])[*_~`]|[*_~`](?:$|[^\p{L}\p{N}])|^\s*(?:>|[-•]\s)|:[\w+-]+:/u

/** Slack reads & < > as markup; unescaped, a tool's name could notify a whole channel. */
export function slackText(text: string, chars: number): string {
  return cut(text, chars).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/** Mail programs make links of these even without slashes. */
const SCHEMES =
  /\b(https?|ftps?|file|mailto|tel|sms|facetime|callto|sips?|skype|xmpp|im|news|nntp|geo|webcal|magnet|tg|whatsapp|spotify|slack|msteams|outlook|onenote|ms-[a-z-]+|data|javascript|vbscript)([:\uff1a])(?=\S)/gi
/**
 * Dots in a name, including characters that browsers accept as a dot. A file such as `report.zip` may also be a host.
 */
const HOST_DOTS = /(?<=[\p{L}\p{N}_-])[.\u2024\u3002\ufe52\uff0e\uff61](?=\p{L}[\p{L}\p{N}-]|xn--)/gu
const ADDRESS = /(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?!\d|\.\d)/g

/** Breaks addresses: programs turn those in plain text into links, and links of clients must not stand beside ours. */
export function withoutLinks(text: string): string {
  return (
    text
      .replaceAll('://', '[:]//')
      .replace(SCHEMES, '$1[:]')
      // The path of a Windows share.
      .replace(/(?<![\p{L}\p{N}:\\])\\\\(?=\\*[\p{L}\p{N}])/gu, '\\[\\]')
      .replace(HOST_DOTS, '[.]')
      .replace(ADDRESS, (address) => address.replaceAll('.', '[.]'))
  )
}

/** Teams takes 28 kB, and rejects a card that it cannot read. */
const CARD_TEXT_CHARS = 2_000
const CARD_FACT_CHARS = 500

/**
 * Uses text runs, because facts and text blocks would show markup as links. Apps of Teams find addresses in any text.
 */
function teamsMessage({ title, about, facts, url }: Told): object {
  const run = (text: string, runStyle: object = {}) => ({ type: 'TextRun', text: withoutLinks(text), ...runStyle })
  const line = (...inlines: object[]) => ({ type: 'RichTextBlock', inlines })
  const content = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.4',
    body: [
      line(run(title, { weight: 'Bolder', size: 'Medium' })),
      ...(about === null ? [] : [line(run(cut(about, CARD_TEXT_CHARS)))]),
      ...facts.map(({ label, text }) => line(run(`${label}: `, { weight: 'Bolder' }), run(cut(text, CARD_FACT_CHARS)))),
    ],
    ...(url !== null && { actions: [{ type: 'Action.OpenUrl', title: OPEN, url }] }),
  }
  const contentType = 'application/vnd.microsoft.card.adaptive'
  return { type: 'message', attachments: [{ contentType, contentUrl: null, content }] }
}

const ROUTING_KEY = 'routing_key'
/** PagerDuty's limits: 1,024 characters in a summary, 255 in a key that joins events. */
const SUMMARY_CHARS = 1_024
const DEDUP_CHARS = 255
const DETAIL_CHARS = 2_000

export function addressFault(format: WebhookFormat, url: string): string | null {
  if (format !== 'pagerduty') return null
  if (URL.parse(url)?.searchParams.get(ROUTING_KEY)) return null
  return `must end with ?${ROUTING_KEY}= and the integration key of the service in PagerDuty`
}

/** Events API, version 2. The integration key in the webhook's address moves to the body. */
function pagerDutyEvent(news: WebhookNews, integrationKey: string): { url: string; body: object } {
  const { type, data, place } = news
  const { title, about, facts, url: page } = toTold(news)
  const { severity = 'info', resolves = false } = LOOKS.get(type) ?? {}
  const address = new URL(integrationKey)
  const routingKey = address.searchParams.get(ROUTING_KEY)
  address.searchParams.delete(ROUTING_KEY)
  const body = {
    routing_key: routingKey,
    event_action: resolves ? 'resolve' : 'trigger',
    dedup_key: cut(`tacho:${subjectOf(news)}`, DEDUP_CHARS),
    payload: {
      summary: cut(about === null ? title : `${title}: ${about}`, SUMMARY_CHARS),
      source: place === null ? 'tacho' : `tacho, ${printable(place.environment)}`,
      severity,
      timestamp: isoTime(news.createdAt),
      class: type,
      ...(typeof data['agentName'] === 'string' && { component: cut(printable(data['agentName']), DEDUP_CHARS) }),
      custom_details: Object.fromEntries(facts.map(({ label, text }) => [label, cut(text, DETAIL_CHARS)])),
    },
    client: 'Tacho',
    ...(page !== null && { client_url: page, links: [{ href: page, text: OPEN }] }),
  }
  return { url: address.href, body }
}

/** The same subject for the beginning and the end of an incident. */
function subjectOf({ id, data }: WebhookNews): string {
  const { approvalId, issueId, alertId, percent } = data
  const subject = approvalId ?? issueId ?? (data['runStatus'] === undefined ? alertId : data['id'])
  // Each step of a budget is a separate incident, and nothing resolves it.
  const step = typeof percent === 'number' && data['kind'] === 'budget' ? `:${percent}` : ''
  return typeof subject === 'string' ? `${subject}${step}` : id
}
