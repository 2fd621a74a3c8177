/** Formats approvals for people. */
import {
  firstApprovalText,
  inputCheckText,
  ranBeforeText,
  waitingText,
} from '@tacho/contract/approvals/approval-text.ts'
import { noOriginText, originText, saysInput, sentenceText } from '@tacho/contract/approvals/sentence-text.ts'
import { duration } from '@tacho/contract/engine/format.ts'
import type { JudgedCall } from '@tacho/contract/approvals/aftermath.ts'
import type {
  ApprovalCard,
  ApprovalDetail,
  InputPreview,
  OperatorApproval,
} from '@tacho/contract/approvals/operator-approval.ts'
import type { CallGrounds } from '@tacho/contract/approvals/call-sentence.ts'
import { lookalikes } from '@tacho/contract/engine/shown-text.ts'
import { counted, printable, spokenTime, strong } from '../engine/output.ts'
import { toned, tonedWord, toneOf } from '../engine/display.ts'

/** The call as text: its sentence and the tool's exact name; only the name, if the input is not known. */
export function callText({
  toolName,
  sentence = [],
}: Pick<OperatorApproval, 'toolName'> & Partial<ApprovalCard>): string {
  return saysInput(sentence) ? `${printable(sentenceText(sentence))}  (${printable(toolName)})` : printable(toolName)
}

/** The text after the tool's name: the call's sentence without the tool's words, or the beginning of the input. */
export function askedText({ sentence = [], inputInShort = null }: Partial<ApprovalCard>): string {
  if (!saysInput(sentence)) return inputInShort ?? ''
  const [, separator, ...others] = sentence
  return separator?.kind === 'words' && separator.text.length <= 3 ? sentenceText(others) : sentenceText(sentence)
}

/** An approval on one line. */
export function approvalLine(approval: OperatorApproval & Partial<ApprovalCard>, now: number): string {
  const { createdAt, id, reason } = approval
  const status = shownApproval(approval)
  const who = requesterOf(approval)
  const why = reason === null || reason === '' ? '' : `  ${printable(reason)}`
  const about = `${callText(approval)}  ${printable(who)}  ${stateText(approval, now)}`
  return `${spokenTime(createdAt)}  ${toned(toneOf(status), status.padEnd(9))}  ${id}  ${about}${why}`
}

/** Status word of a request whose caller has left: nothing runs, even if a person approves. */
export const WITHDRAWN = 'WITHDRAWN'

/** The status of an approval. A withdrawn request is not shown as waiting. */
export function shownApproval({ status, waiting }: Pick<OperatorApproval, 'status' | 'waiting'>): string {
  return status === 'PENDING' && waiting.state === 'withdrawn' ? WITHDRAWN : status
}

/** The requester: the agent by its name, or the client if it named no agent. */
export function requesterOf({ agentName, agentId, clientId }: OperatorApproval): string {
  return agentName ?? agentId ?? clientId
}

/** The agent's name and id. Without an id in the request, the name is that of its run's agent. */
export function agentText({ agentName, agentId }: OperatorApproval): string | null {
  return agentName === null || agentId === null || agentName === agentId
    ? (agentId ?? agentName)
    : `${agentName} (${agentId})`
}

/** The outcome, or the time left. */
export function stateText(approval: OperatorApproval, now: number) {
  const { status, expiresAt, decidedAt, decidedBy, decisionReason, importedAt } = approval
  if (importedAt !== null) return `imported ${spokenTime(importedAt)}, ${importedText({ status, decidedBy })}`
  const waits = waitingText(approval.waiting, now)
  if (status === 'PENDING') {
    return [...peopleTexts(approval), deadlineText(expiresAt, now), ...(waits === null ? [] : [waits])].join('; ')
  }
  if (status === 'EXPIRED') return `expired ${spokenTime(expiresAt)} without a decision`
  const why = decisionReason === null || decisionReason === '' ? '' : `: ${printable(decisionReason)}`
  const where = decidedBy?.via === 'slack' ? ' in Slack' : decidedBy?.via === 'grant' ? ' in a standing approval' : ''
  const isStopped = approval.waiting.state === 'stopped'
  const nothing = waits === null ? '' : `; ${waits}${isStopped ? ', so nothing runs unless it asks again' : ''}`
  const { firstApproval: first } = approval
  const both = status === 'APPROVED' && first !== null ? `${printable(first.by.name)} and ` : ''
  const by = `by ${both}${printable(decidedBy?.name ?? 'an operator')}${where}`
  return `${by} ${decidedAt === null ? '' : spokenTime(decidedAt)}${why}${nothing}`
}

/** Lines about a request that needs two people. */
function peopleTexts({ approvers, firstApproval: first }: OperatorApproval): string[] {
  if (approvers === 1) return []
  if (first === null) return ['needs two people']
  const approved = firstApprovalText({ name: first.by.name, reason: first.reason })
  return [printable(`approved first ${approved}`)]
}

/** A note on an imported approval, whose facts this installation cannot confirm. */
function importedText({ status, decidedBy }: Pick<OperatorApproval, 'status' | 'decidedBy'>): string {
  return decidedBy === null ? `as ${status}` : `as ${status} by ${printable(decidedBy.name)}`
}

/** `expires in 4 m 10 s` */
export function deadlineText(expiresAt: string, now: number): string {
  return `expires in ${duration(Math.max(0, Date.parse(expiresAt) - now))}`
}

/** All details of one approval. */
export function cardLines(card: ApprovalCard, now: number): string[] {
  const { askedLately: asked } = card
  const line = (name: string, value: string | null) => (value === null ? [] : [`${name.padEnd(9)}${printable(value)}`])
  const count = `${asked.requests}${asked.capped ? ' or more' : ''}`
  const burst = `Warning: this agent requested ${count} approvals within ${duration(asked.windowMs)}; decide with care`
  return [
    `${tonedWord(shownApproval(card))}  ${strong(callText(card))}`,
    ...line('Why', card.reason),
    ...line('Agent', agentText(card)),
    ...line('Client', card.clientId),
    ...line('Run', card.runId),
    ...line('Policy', card.policyId),
    ...line('Input', card.inputHash),
    ...line('Asked', spokenTime(card.createdAt)),
    ...line('State', stateText(card, now)),
    ...line('Grant', card.grantId),
    ...line('Id', card.id),
    ...(asked.burst ? [burst] : []),
    ...alarms(card, now),
    ...letterWarnings(card),
  ]
}

/** Warnings that a person must read before they approve a call. */
export function alarms({ inputCheck, ranBefore }: ApprovalCard, now: number): string[] {
  return [
    ...(inputCheck?.result === 'does_not_match' ? [`Warning: the input ${inputCheckText(inputCheck)}`] : []),
    ...(ranBefore === null ? [] : [`Warning: ${ranBeforeText(ranBefore, now)}`]),
  ]
}

/** Warnings about words with look-alike letters: an attacker can name a tool like a harmless one. */
export function letterWarnings(approval: OperatorApproval, input: InputPreview | null = null): string[] {
  const { toolName, reason, agentName, agentId } = approval
  const texts = [toolName, reason, agentName, agentId, input?.json ?? null].filter((text) => text !== null)
  const notes = [...new Set(texts.flatMap(lookalikes))]
  return notes.slice(0, WARNINGS_SHOWN).map((note) => `Warning: ${printable(note)}`)
}

const WARNINGS_SHOWN = 5

/** All details of one approval, with its recorded input. */
export function detailLines(detail: ApprovalDetail, now: number): string[] {
  const { inputPreview, deciders } = detail
  const warned = new Set(cardLines(detail, now))
  const names = deciders?.people.map(({ name }) => printable(name)).join(', ')
  const tokens = deciders?.tokens ? `, and ${counted(deciders.tokens, 'operator token')},` : ''
  return [
    ...warned,
    ...letterWarnings(detail, inputPreview).filter((line) => !warned.has(line)),
    ...(names ? [`Decide   ${names}${deciders?.more ? ' and others' : ''}${tokens} can`] : []),
    ...groundsLines(detail),
    ...inputLines(detail),
  ]
}

/** Lines with the user's words, and the source of each value. */
export function groundsLines({ grounds }: Pick<ApprovalDetail, 'grounds'>): string[] {
  if (!grounds) return []
  return [
    ...grounds.said.map(({ text, isCut, step }) => `Said     "${printable(text)}${isCut ? '…' : ''}" (step ${step})`),
    ...(grounds.fields.length === 0 ? [] : ['Values, and where they come from:']),
    ...grounds.fields.map((field) => fieldLine(field, grounds)),
    ...(grounds.moreFields ? ['  … more values'] : []),
  ]
}

const CHECKS = {
  matches: '',
  sealed: ', masked',
  cannot_be_checked: ', cannot be checked',
  does_not_match: ', NOT what the agent asked for',
}

function fieldLine(field: CallGrounds['fields'][number], grounds: CallGrounds): string {
  const { path, json, isCut, origins, check } = field
  const from = origins?.map(originText).join('; ') || noOriginText(field, grounds)
  return `  ${printable(path || 'input')}: ${printable(json)}${isCut ? '…' : ''}  ${printable(from)}${CHECKS[check]}`
}

type WithInput = Pick<ApprovalDetail, 'inputPreview' | 'runId' | 'grantId'>

/** Maximum characters of an input on a terminal. */
const SHOWN_CHARS = 4_000

function inputLines({ inputPreview, runId, grantId }: WithInput): string[] {
  if (inputPreview === null) {
    if (runId === null) return ['The request has no run, so no input is shown.']
    if (grantId !== null)
      return ['The standing approval answered before an input was recorded. Look for it in the run.']
    return ['The client recorded no input for this approval.']
  }
  const { json, isTruncated, isShortened, bytes } = inputPreview
  const isCut = isTruncated || json.length > SHOWN_CHARS
  const end = isCut ? ` … (${bytes} bytes)` : ''
  const check = `It ${inputCheckText(inputPreview.check)}.`
  const warning = isShortened ? ['Warning: the input was too large to record whole; parts of it are missing here'] : []
  return [
    'Input, masked, as the client recorded it:',
    `  ${printable(json.slice(0, SHOWN_CHARS))}${end}`,
    check,
    ...warning,
  ]
}

/** A recorded tool call on one line, with how it relates to the approval. */
export function callLine({ timestamp, message, toolName, outcome, eventId }: JudgedCall): string {
  const what = `${printable(toolName ?? 'a tool')} (${outcome})`
  return `${spokenTime(timestamp)}  ${what}  ${message}; event ${printable(eventId)}`
}
