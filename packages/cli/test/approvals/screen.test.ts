import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ApprovalStatus } from '@tacho/contract/approvals/approval.ts'
import type { ApprovalCard, ApprovalDetail, OperatorApproval } from '@tacho/contract/approvals/operator-approval.ts'
import {
  atTime,
  EMPTY_SCREEN,
  pressed,
  screenLines,
  withApproval,
  withCards,
  withoutApproval,
  type Screen,
} from '../../src/approvals/screen.ts'
import { widthOf } from '../../src/engine/text-width.ts'

const NOW = Date.UTC(2026, 10, 22, 12)
const SIZE = { width: 80, height: 24 }

function approval(id: string, minutes: number, status: ApprovalStatus = 'PENDING'): OperatorApproval {
  const [createdAt, expiresAt] = [NOW, NOW + minutes * 60_000].map((time) => new Date(time).toISOString())
  const request = {
    clientId: 'c',
    clientRequestId: id,
    runId: 'r',
    sessionId: null,
    agentId: 'bot',
    agentName: null,
    policyId: 'limit',
  }
  const rest = {
    toolName: `tool-${id}`,
    inputHash: 'ab',
    reason: 'why',
    timeoutMs: 1,
    decidedBy: null,
    importedAt: null,
    waiting: { state: 'unknown', lastSeenAt: null, reason: null },
  }
  return {
    id,
    status,
    ...request,
    ...rest,
    createdAt,
    expiresAt,
    decidedAt: null,
    decisionReason: null,
  } as OperatorApproval
}

const withAll = (...all: OperatorApproval[]) =>
  all.reduce((screen, one) => withApproval(screen, one, NOW), EMPTY_SCREEN as Screen)
const text = (screen: Screen, now = NOW) => screenLines(screen, SIZE, now).join('\n')
const press = (screen: Screen, sequence: string, now = NOW + 10_000) => pressed(screen, { sequence }, now)

test('a request for which nobody waits any more says so, in its row and in its details, and rows have their input', () => {
  const [one, other] = [approval('1', 60), approval('2', 70)]
  const waiting = { state: 'stopped', lastSeenAt: new Date(NOW - 55_000).toISOString(), reason: null } as const
  const cards = [{ ...one, waiting, inputInShort: '{"amount":270}' }, approval('gone', 1)] as ApprovalCard[]
  const screen = withCards(withAll(one, other), cards)
  const lines = text(screen).split('\n')
  assert.match(lines[1] ?? '', /^> nobody waits: tool-1 {2}bot {2}\{"amount":270\} /)
  assert.match(lines[2] ?? '', /^ {2}tool-2 {2}bot +1 h/)
  assert.match(text(screen), /Waits +the agent stopped waiting 55\.0 s ago/)
  assert.deepEqual([...screen.pending.keys()], ['1', '2'])
})

test('a request reads as a sentence, with what the user said, where its values come from, and a key that says what it does', () => {
  const one = approval('1', 60)
  const sentence = [
    { kind: 'words', text: 'Refund ' },
    { kind: 'amount', text: '917 EUR' },
    { kind: 'value', text: ' · A-7\u202e' },
  ] as const
  const origin = { kind: 'result', label: 'get_order', path: 'total', isPart: false, step: 4, eventId: 'e' } as const
  const field = { path: 'amount', json: '917', isCut: false, check: 'matches', origins: [origin] } as const
  const grounds = {
    said: [{ text: 'my money', isCut: false, step: 1, eventId: 'u' }],
    fields: [field, { ...field, path: 'iban', json: '"DE1"', origins: [] }],
    moreFields: false,
    stepsRead: 4,
    isWhole: true,
  }
  const detail = {
    ...one,
    sentence,
    grounds,
    askedLately: { burst: false },
    inputCheck: null,
    ranBefore: null,
    inputPreview: null,
  }
  const details = new Map([['1', detail as unknown as ApprovalDetail]])
  const screen = { ...withCards(withAll(one), [detail as unknown as ApprovalCard]), details, selected: '1' }
  const shown = text(screen)
  assert.match(shown, /^> Refund 917 EUR · A-7\\u202e {2}\(tool-1\) {2}bot/m)
  assert.match(shown, /^Said +"my money" \(step 1\)$/m)
  assert.match(shown, /^ {2}amount: 917 {2}equals total of get_order, step 4$/m)
  assert.match(shown, /^ {2}iban: "DE1" {2}nowhere in this run$/m)
  assert.match(shown, /^a approve 917 EUR {2}r reject/m)
  const differs = { ...detail, inputCheck: { result: 'does_not_match', reason: null, sealed: 0 } }
  assert.match(
    text({ ...screen, details: new Map([['1', differs as unknown as ApprovalDetail]]) }),
    /^a approve {2}r reject/m,
  )
})

test('approvals stand by deadline, which ticks; no line is wider or lower than the terminal', () => {
  const screen = withAll(...Array.from({ length: 30 }, (_, at) => approval(`${at}`, 60 - at)))
  const lines = screenLines({ ...screen, selected: '29' }, SIZE, NOW)
  assert.match(lines[0] ?? '', /1 of 30$/)
  assert.match(lines[1] ?? '', /^> tool-29 {2}bot +31 m 00 s$/)
  assert.ok(lines.length <= SIZE.height && lines.every((line) => widthOf(line) <= SIZE.width))
  assert.match(text({ ...screen, selected: '29' }, NOW + 1_000), /^> tool-29 {2}bot +30 m 59 s$/m)
  assert.match(text({ ...screen, selected: '0' }), /30 of 30/)
})

test('what expired is gone, and a key that was meant for it decides nothing', () => {
  const screen = withAll(approval('a', 1), approval('b', 5))
  assert.equal(screen.selected, 'a')
  const later = NOW + 60_000
  const after = atTime(screen, later)
  assert.deepEqual([[...after.pending.keys()], after.selected], [['b'], 'b'])
  assert.match(text(after, later), /tool-a expired without a decision\./)
  assert.equal(press(after, 'a', later + 999).act, null)
  assert.equal(press(after, 'a', later + 1_000).act?.kind, 'decide')
})

test('a request that is decided elsewhere leaves the screen with its outcome', () => {
  const screen = withAll(approval('a', 1), approval('b', 5))
  const decided = withApproval(screen, approval('a', 1, 'REJECTED'), NOW)
  assert.deepEqual([decided.selected, decided.notice], ['b', 'tool-a was rejected.'])
  assert.match(text(withApproval(decided, approval('b', 5, 'APPROVED'), NOW)), /Nothing waits for a decision/)
})

test('an erased request leaves the screen, with all that it showed', () => {
  const screen = withAll(approval('a', 1), approval('b', 5))
  const erased = withoutApproval(screen, 'a', NOW)
  assert.deepEqual([erased.selected, erased.notice], ['b', 'A request was erased.'])
  assert.doesNotMatch(text(erased), /tool-a/)
})

test('one key decides the selected request, another its whole group, and others nothing', () => {
  const screen = withAll(approval('a', 1), { ...approval('b', 5), toolName: 'tool-a' })
  const { act } = press(screen, 'a')
  assert.ok(act?.kind === 'decide')
  assert.deepEqual([act.decision, act.approval.id, act.isGroup, act.reason], ['APPROVED', 'a', false, ''])
  const group = press(screen, 'g').screen
  assert.match(text(group), /Decide all 2 with this input/)
  assert.ok(press(group, 'r').act?.kind === 'decide')
  for (const key of ['x', ' ', '\r', 'constructor', 'j', 'k', 'g']) assert.equal(press(screen, key).act, null)
  assert.equal(press(screen, 'q').act?.kind, 'quit')
  assert.equal(pressed(screen, { name: 'c', ctrl: true }, NOW).act?.kind, 'quit')
  assert.equal(press(EMPTY_SCREEN, 'a').act, null)
})

test('a reason is typed; Escape leaves it, Enter decides with it', () => {
  let { screen } = press(withAll(approval('a', 1)), 'R')
  for (const letter of ['n', 'q', 'x']) ({ screen } = press(screen, letter))
  ;({ screen } = pressed(screen, { name: 'backspace', sequence: '\u007f' }, NOW))
  assert.match(text(screen), /Reason to reject.*: nq_/)
  assert.equal(pressed(screen, { name: 'escape', sequence: '\u001b' }, NOW).screen.reason, null)
  const { act } = pressed(screen, { name: 'return', sequence: '\r' }, NOW)
  assert.ok(act?.kind === 'decide')
  assert.deepEqual([act.decision, act.reason], ['REJECTED', 'nq'])
})

test('an input that does not match is loud, and approving it takes the key twice', () => {
  const card = approval('a', 1)
  const inputCheck = { result: 'does_not_match', reason: null, sealed: 0 } as const
  const inputPreview = { json: '{"amount":5}', isTruncated: false, isShortened: false, bytes: 12, check: inputCheck }
  const ran = { approvalId: 'before', at: new Date(NOW - 8_000).toISOString(), status: 'returned' } as const
  const asked = { requests: 1, capped: false, windowMs: 1, burst: false }
  const detail = { ...card, inputCheck, inputPreview, ranBefore: ran, askedLately: asked } as unknown as ApprovalDetail
  const screen = { ...withAll(card), details: new Map([['a', detail]]) }
  assert.match(text(screen), /Warning: the input DOES NOT MATCH what the agent asked for/)
  assert.match(text(screen), /Warning: this very call ran 8\.0 s ago under approval before, and returned/)
  const first = press(screen, 'a')
  assert.equal(first.act, null)
  assert.match(text(first.screen), /a again approves it all the same/)
  const second = press(first.screen, 'a')
  assert.ok(second.act?.kind === 'decide' && second.act.confirmMismatch)
  const reject = press(screen, 'r')
  assert.ok(reject.act?.kind === 'decide' && !reject.act.confirmMismatch)
  const moved = press({ ...withApproval(first.screen, approval('b', 2), NOW) }, 'j').screen
  assert.equal(press({ ...moved, selected: 'a' }, 'a').act, null, 'the first press is forgotten')
})

test('a request says when its agent stopped waiting; a withdrawn one leaves the screen', () => {
  const lastSeenAt = new Date(NOW - 120_000).toISOString()
  const stopped = { ...approval('a', 1), waiting: { state: 'stopped', lastSeenAt, reason: null } as const }
  assert.match(text(withAll(stopped)), /the agent stopped waiting 2 m 00 s ago/)
  const withdrawn = { ...stopped, waiting: { state: 'withdrawn', lastSeenAt, reason: 'cancelled' } as const }
  const screen = withApproval(withAll(stopped), withdrawn, NOW)
  assert.match(text(screen), /Nothing waits/)
  assert.match(text(screen), /tool-a was withdrawn by its client/)
})
