/**
 * The screen of `tacho approvals watch`: waiting approvals, earliest deadline first, and the selected one in full. Pure.
 *
 *   choosing --a, r--> deciding --> choosing
 *   choosing --A, R--> asked for a reason --Enter--> deciding; --Esc--> choosing
 *
 * A person must press the key twice to approve an input that is not the one that would run.
 *
 * If the selected approval is decided elsewhere or expires, the next one takes its place. Keys then decide nothing for
 * a moment, because they were meant for the previous one.
 */
import { duration } from '@tacho/contract/engine/format.ts'
import type { Decision } from '@tacho/contract/approvals/approval.ts'
import type { ApprovalCard, ApprovalDetail, OperatorApproval } from '@tacho/contract/approvals/operator-approval.ts'
import { cutEnd, pad } from '../engine/text-width.ts'
import { indented } from '@tacho/contract/record/json-text.ts'
import { printable } from '@tacho/contract/engine/shown-text.ts'
import { toned } from '../engine/display.ts'
import { inputCheckText, waitingText } from '@tacho/contract/approvals/approval-text.ts'
import { approveText, saysInput } from '@tacho/contract/approvals/sentence-text.ts'
import { agentText, alarms, callText, groundsLines, letterWarnings, requesterOf } from './approval-lines.ts'

export interface Screen {
  /** Pending approvals by id. They are cards once a list was read. */
  pending: ReadonlyMap<string, OperatorApproval & Partial<ApprovalCard>>
  details: ReadonlyMap<string, ApprovalDetail>
  selected: string | null
  /** Whether a decision is about all requests with the tool and input of the selected one. */
  isGroup: boolean
  /** The reason that is being typed. */
  reason: { decision: Decision; text: string } | null
  notice: string | null
  /** Id of an approval whose input does not match and that was approved once; the same key again decides. */
  confirming: string | null
  /** Keys do not decide before this time. */
  steadyAt: number
}

export type Act =
  | { kind: 'quit' }
  | {
      kind: 'decide'
      decision: Decision
      reason: string
      approval: OperatorApproval
      isGroup: boolean
      confirmMismatch: boolean
      /**
       * The event whose input the screen shows; null: the screen shows that no input is recorded; undefined: not read
       * yet.
       */
      seenInput: string | null | undefined
    }

/** A key as `node:readline` names it. */
export interface Key {
  name?: string | undefined
  sequence?: string | undefined
  ctrl?: boolean | undefined
}

const STEADY_MS = 1_000
const REASON_CHARS = 500

export const EMPTY_SCREEN: Screen = {
  pending: new Map(),
  details: new Map(),
  selected: null,
  isGroup: false,
  reason: null,
  notice: null,
  confirming: null,
  steadyAt: 0,
}

/** Pending ones, the earliest deadline first. */
export function waiting({ pending }: Screen): (OperatorApproval & Partial<ApprovalCard>)[] {
  return [...pending.values()].sort((one, other) => Date.parse(one.expiresAt) - Date.parse(other.expiresAt))
}

export function withApproval(screen: Screen, approval: OperatorApproval, now: number): Screen {
  const pending = new Map(screen.pending)
  const isOpen = approval.status === 'PENDING' && approval.importedAt === null
  if (isOpen && approval.waiting.state !== 'withdrawn') pending.set(approval.id, approval)
  else pending.delete(approval.id)
  const isGone = screen.pending.has(approval.id) && !pending.has(approval.id)
  const by = approval.decidedBy === null ? '' : ` by ${approval.decidedBy.name}`
  const what =
    approval.waiting.state === 'withdrawn' ? 'withdrawn by its client' : `${approval.status.toLowerCase()}${by}`
  const notice = isGone ? `${approval.toolName} was ${what}.` : screen.notice
  return selecting({ ...screen, pending, notice }, screen, now)
}

/** Adds to the pending approvals whether a caller still waits, and the input in short: a stream sends neither. */
export function withCards(screen: Screen, cards: readonly ApprovalCard[]): Screen {
  const pending = new Map(screen.pending)
  for (const card of cards) if (pending.has(card.id)) pending.set(card.id, card)
  return { ...screen, pending }
}

/** The screen without an erased approval. */
export function withoutApproval(screen: Screen, id: string, now: number): Screen {
  if (!screen.pending.has(id)) return screen
  const pending = new Map(screen.pending)
  pending.delete(id)
  return selecting({ ...screen, pending, notice: 'A request was erased.' }, screen, now)
}

/** The screen without expired approvals. */
export function atTime(screen: Screen, now: number): Screen {
  const dead = [...screen.pending.values()].filter(({ expiresAt }) => Date.parse(expiresAt) <= now)
  if (dead.length === 0) return screen
  const pending = new Map(screen.pending)
  for (const { id } of dead) pending.delete(id)
  const notice = `${dead.map(({ toolName }) => toolName).join(', ')} expired without a decision.`
  return selecting({ ...screen, pending, notice }, screen, now)
}

/** Keeps the selection, or selects the next row in its place. */
function selecting(screen: Screen, before: Screen, now: number): Screen {
  if (screen.selected !== null && screen.pending.has(screen.selected)) return screen
  const place = waiting(before).findIndex(({ id }) => id === before.selected)
  const left = waiting(screen)
  const next = left[Math.min(Math.max(0, place), left.length - 1)]
  const details = new Map([...screen.details].filter(([id]) => screen.pending.has(id)))
  const steadyAt = before.selected === null ? screen.steadyAt : now + STEADY_MS
  return { ...screen, details, selected: next?.id ?? null, isGroup: false, reason: null, steadyAt }
}

/** Applies a key to the screen. */
export function pressed(screen: Screen, key: Key, now: number): { screen: Screen; act: Act | null } {
  if (key.ctrl && key.name === 'c') return { screen, act: { kind: 'quit' } }
  const approval = screen.selected === null ? undefined : screen.pending.get(screen.selected)
  if (screen.reason !== null && approval) return typed(screen, screen.reason, approval, key)
  const stay = { screen, act: null }
  switch (key.sequence) {
    case 'q':
      return { screen, act: { kind: 'quit' } }
    case 'g':
      return { screen: { ...screen, isGroup: !screen.isGroup }, act: null }
    case 'a':
    case 'r':
    case 'A':
    case 'R': {
      if (!approval || now < screen.steadyAt) return stay
      const decision = key.sequence.toLowerCase() === 'a' ? 'APPROVED' : 'REJECTED'
      const differs = decision === 'APPROVED' && isMismatched(screen, approval)
      if (differs && screen.confirming !== approval.id) {
        const notice = `Its input does not match what would run. ${key.sequence} again approves it all the same.`
        return { screen: { ...screen, confirming: approval.id, notice }, act: null }
      }
      if (key.sequence !== key.sequence.toLowerCase())
        return { screen: { ...screen, reason: { decision, text: '' } }, act: null }
      const confirmMismatch = differs
      return {
        screen: { ...screen, confirming: null },
        act: decidingAct(screen, approval, { decision, reason: '', confirmMismatch }),
      }
    }
    case 'j':
      return { screen: moved(screen, 1), act: null }
    case 'k':
      return { screen: moved(screen, -1), act: null }
  }
  if (key.name === 'down') return { screen: moved(screen, 1), act: null }
  if (key.name === 'up') return { screen: moved(screen, -1), act: null }
  return stay
}

function typed(
  screen: Screen,
  { decision, text }: NonNullable<Screen['reason']>,
  approval: OperatorApproval,
  key: Key,
) {
  const editing = (next: string) => ({ screen: { ...screen, reason: { decision, text: next } }, act: null })
  if (key.name === 'escape') return { screen: { ...screen, reason: null }, act: null }
  if (key.name === 'backspace') return editing(Array.from(text).slice(0, -1).join(''))
  if (key.name === 'return' || key.name === 'enter') {
    // The key that opened the reason was already the second press.
    const confirmMismatch = decision === 'APPROVED' && isMismatched(screen, approval)
    const act = decidingAct(screen, approval, { decision, reason: text.trim(), confirmMismatch })
    return { screen: { ...screen, reason: null, confirming: null }, act }
  }
  const character = key.sequence ?? ''
  return key.ctrl || /\p{Cc}/u.test(character) ? editing(text) : editing((text + character).slice(0, REASON_CHARS))
}

type Deciding = Act & { kind: 'decide' }

function decidingAct(
  { isGroup, details }: Screen,
  approval: OperatorApproval,
  chosenDecision: Pick<Deciding, 'decision' | 'reason' | 'confirmMismatch'>,
): Deciding {
  const shown = details.get(approval.id)?.inputPreview
  const seenInput = shown === null ? null : shown?.eventId
  return { kind: 'decide', ...chosenDecision, approval, isGroup, seenInput }
}

function moved(screen: Screen, by: number): Screen {
  const all = waiting(screen)
  const place = all.findIndex(({ id }) => id === screen.selected)
  const next = all[Math.min(all.length - 1, Math.max(0, place + by))]
  return { ...screen, selected: next?.id ?? null, isGroup: false, notice: null, confirming: null }
}

function isMismatched({ details }: Screen, { id }: OperatorApproval): boolean {
  return details.get(id)?.inputCheck?.result === 'does_not_match'
}

/** Pending requests with the tool and input of this one. */
export function groupOf({ pending }: Screen, { toolName, inputHash }: OperatorApproval): OperatorApproval[] {
  return [...pending.values()].filter((one) => one.toolName === toolName && one.inputHash === inputHash)
}

const LISTED = 8
const NAME_WIDTH = 9
const KEYS = '  r reject  A R with a reason  g all with this input  j k other  q quit'

/** The lines that fit on the terminal. */
export function screenLines(screen: Screen, size: { width: number; height: number }, now: number): string[] {
  const all = waiting(screen)
  const place = all.findIndex(({ id }) => id === screen.selected)
  const approval = all[place]
  const count = approval === undefined ? 'none' : `${place + 1} of ${all.length}`
  const title = 'Approvals that wait'
  const head = toned('strong', `${title}${pad(count, size.width - title.length, 'right')}`)
  const first = Math.max(0, Math.min(place - LISTED + 2, all.length - LISTED))
  const rows = all.slice(first, first + LISTED).map((one) => rowLine(screen, one, size.width, now))
  const body =
    approval === undefined
      ? ['', 'Nothing waits for a decision. This screen shows requests as they come.']
      : [...rows, '', ...detailText(screen, approval, now)]
  const foot = ['', footLine(screen, approval), screen.notice === null ? '' : printable(screen.notice)]
  const room = Math.max(0, size.height - foot.length - 2)
  const shown = body.length > room ? [...body.slice(0, Math.max(0, room - 1)), '…'] : body
  return [head, ...[...shown, ...foot].map((line) => cutEnd(line, size.width))]
}

function rowLine(screen: Screen, one: OperatorApproval & Partial<ApprovalCard>, width: number, now: number): string {
  const group = groupOf(screen, one).length
  const left = duration(Math.max(0, Date.parse(one.expiresAt) - now))
  const who = requesterOf(one)
  const times = group > 1 ? `  ×${group}` : ''
  const mark = one.id === screen.selected ? '>' : ' '
  const end = `  ${pad(left, NAME_WIDTH, 'right')}`
  const dead = one.waiting.state === 'stopped' ? 'nobody waits: ' : ''
  const what = (
    saysInput(one.sentence ?? [])
      ? [callText(one), printable(who)]
      : [one.toolName, who, one.inputInShort ?? ''].filter(Boolean).map(printable)
  ).join('  ')
  const text = cutEnd(`${mark} ${dead}${what}`, width - end.length - times.length) + times
  return pad(text, width - end.length) + end
}

function detailText(screen: Screen, approval: OperatorApproval, now: number): string[] {
  const line = (name: string, value: string | null) =>
    value === null || value === '' ? [] : [`${name.padEnd(NAME_WIDTH)}${printable(value)}`]
  const detail = screen.details.get(approval.id)
  const asked = detail?.askedLately
  return [
    ...(detail === undefined ? [] : [toned('strong', callText(detail))]),
    ...line('Tool', approval.toolName),
    ...line('Why', approval.reason),
    ...line('Agent', agentText(approval) ?? approval.clientId),
    ...line('Run', approval.runId),
    ...line('Policy', approval.policyId),
    ...line('Expires', `in ${duration(Math.max(0, Date.parse(approval.expiresAt) - now))}`),
    ...(asked?.burst ? [`Warning: ${asked.requests} requests of this agent within ${duration(asked.windowMs)}`] : []),
    ...line('Waits', waitingText(approval.waiting, now)),
    ...(detail === undefined ? [] : alarms(detail, now)),
    ...letterWarnings(approval, detail?.inputPreview),
    '',
    ...(detail === undefined ? [] : groundsLines(detail)),
    ...inputText(detail),
  ]
}

function inputText(detail: ApprovalDetail | undefined): string[] {
  if (detail === undefined) return ['Reading its input…']
  const { inputPreview: input } = detail
  if (input === null) return ['The client recorded no input for this approval.']
  const lines = input.isTruncated ? [input.json] : indented(input.json).split('\n')
  const warning = input.isShortened || input.isTruncated ? ['Warning: parts of the input are missing here'] : []
  return [
    'Input, masked, as the client recorded it:',
    ...lines.map((line) => `  ${printable(line)}`),
    `It ${inputCheckText(input.check)}.`,
    ...warning,
  ]
}

function footLine(screen: Screen, approval: OperatorApproval | undefined): string {
  if (approval === undefined) return 'q quit'
  const { reason, isGroup } = screen
  const sentence = isMismatched(screen, approval) ? [] : (screen.details.get(approval.id)?.sentence ?? [])
  const keys = `a ${printable(approveText(sentence)).replace('Approve', 'approve')}${KEYS}`
  const which = isGroup ? ` all ${groupOf(screen, approval).length} with this input` : ''
  if (reason !== null) {
    const verb = reason.decision === 'APPROVED' ? 'approve' : 'reject'
    return `Reason to ${verb}${which}, sent to the client (Enter: decide, Esc: back): ${reason.text}_`
  }
  return isGroup ? `Decide${which}:  ${keys}` : keys
}
