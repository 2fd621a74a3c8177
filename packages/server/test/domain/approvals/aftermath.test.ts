import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CALL_VERDICTS, type CallVerdict } from '@tacho/contract/approvals/aftermath.ts'
import { linkCalls } from '../../../src/domain/approvals/aftermath.ts'
import { toNewApproval } from '../../../src/domain/approvals/approval.ts'
import type { ApprovalRow, ToolEventRow } from '../../../src/storage/approvals/approvals.ts'
import { pending } from '../../storage/suite/approvals/approval-sample.ts'

const RUN = 'run'
const HASH = 'aa'.repeat(16)
const OTHER_HASH = 'bb'.repeat(16)
const CREATED = 1_000
const DECIDED = 2_000
const EXPIRES = 5_000

/** An approval of the run for `pay` with HASH, created at CREATED. */
function approval(id: string, given: Partial<ApprovalRow> = {}): ApprovalRow {
  const decidedAt = given.status === 'APPROVED' || given.status === 'REJECTED' ? DECIDED : null
  const asked = { clientRequestId: id, runId: RUN, toolName: 'pay', inputHash: HASH, timeoutMs: EXPIRES - CREATED }
  const request = toNewApproval(asked, { id, environmentId: 'env', clientId: 'client', now: CREATED })
  return { ...request, ...pending, decidedAt, revision: 1, ...given }
}

let seq = 0

/** A call of `pay` with HASH, stored last. */
function call(given: Partial<ToolEventRow> = {}): ToolEventRow {
  seq += 1
  return {
    seq,
    eventId: `event ${seq}`,
    kind: 'TOOL_CALL',
    label: 'pay',
    time: seq,
    receivedAt: EXPIRES + 1_000,
    toolName: 'pay',
    inputHash: HASH,
    approvalId: null,
    action: null,
    outcome: 'output',
    neverRan: false,
    ...given,
  }
}

const decision = (action: string, given: Partial<ToolEventRow> = {}): ToolEventRow =>
  call({ kind: 'POLICY_DECISION', action, ...given })

/** Verdict, approval and link of each judged call. */
function judged(approvals: ApprovalRow[], ...events: ToolEventRow[]): [CallVerdict, string | null, string][] {
  return linkCalls(RUN, approvals, events).map(({ verdict, approvalId, linkedBy }) => [verdict, approvalId, linkedBy])
}

test('a call that names its approval is judged by the state of that approval', () => {
  const states = {
    APPROVED: 'as_approved',
    REJECTED: 'after_rejection',
    EXPIRED: 'after_expiry',
    PENDING: 'before_decision',
  } as const
  for (const [status, verdict] of Object.entries(states)) {
    const rows = [approval('a', { status: status as ApprovalRow['status'] })]
    assert.deepEqual(judged(rows, call({ approvalId: 'a' })), [[verdict, 'a', 'approvalId']])
  }
})

test('a call that names no approval is matched by its tool and input', () => {
  for (const [status, verdict] of [
    ['APPROVED', 'as_approved'],
    ['REJECTED', 'after_rejection'],
    ['EXPIRED', 'after_expiry'],
  ] as const) {
    assert.deepEqual(judged([approval('a', { status })], call()), [[verdict, 'a', 'inputHash']])
  }
})

test('a call that was stored before the decision ran before it, whatever the decision', () => {
  for (const status of ['APPROVED', 'REJECTED'] as const) {
    const rows = [approval('a', { status })]
    assert.deepEqual(judged(rows, call({ receivedAt: DECIDED - 1 })), [['before_decision', 'a', 'inputHash']])
    assert.notEqual(judged(rows, call({ receivedAt: DECIDED }))[0]?.[0], 'before_decision')
  }
  const expired = [approval('a', { status: 'EXPIRED' })]
  assert.deepEqual(judged(expired, call({ receivedAt: EXPIRES - 1 })), [['before_decision', 'a', 'inputHash']])
  assert.deepEqual(judged(expired, call({ receivedAt: EXPIRES })), [['after_expiry', 'a', 'inputHash']])
})

test("the client's clock does not matter", () => {
  const rows = [approval('a', { status: 'APPROVED' })]
  assert.deepEqual(judged(rows, call({ time: 0 })), [['as_approved', 'a', 'inputHash']])
})

test('a call with another input or tool than requested is reported, even if it was approved', () => {
  for (const status of ['APPROVED', 'REJECTED', 'PENDING'] as const) {
    const rows = [approval('a', { status })]
    const named = { approvalId: 'a' }
    assert.deepEqual(judged(rows, call({ ...named, inputHash: OTHER_HASH })), [['other_input', 'a', 'approvalId']])
    assert.deepEqual(judged(rows, call({ ...named, toolName: 'delete' })), [['other_tool', 'a', 'approvalId']])
  }
})

test('a call of the tool with another input, which no policy judged, is matched to the unused approval', () => {
  const rows = [approval('a', { status: 'APPROVED' })]
  const other = call({ inputHash: OTHER_HASH })
  assert.deepEqual(judged(rows, other), [['other_input', 'a', 'toolName']])
  // The approved call was recorded, so a call with another input is unrelated.
  assert.deepEqual(judged(rows, call(), other), [['as_approved', 'a', 'inputHash']])
  // A policy allowed this input, so the call needs no approval.
  assert.deepEqual(judged(rows, decision('ALLOW', { inputHash: OTHER_HASH }), other), [])
  // It was stored before approval was requested.
  assert.deepEqual(judged(rows, { ...other, receivedAt: CREATED - 1 }), [])
})

test('a call before the recorded request has nothing to do with it, although both were stored afterwards', () => {
  const asked = approval('a')
  const request = call({ kind: 'POLICY_DECISION', action: 'REQUIRE_APPROVAL', approvalId: 'a' })
  const [before, after] = [call({ inputHash: OTHER_HASH }), call({ inputHash: OTHER_HASH })]
  assert.deepEqual(linkCalls(RUN, [asked], [before, request]), [])
  assert.deepEqual(
    linkCalls(RUN, [asked], [before, request, after]).map(({ call: { eventId }, verdict }) => [eventId, verdict]),
    [[after.eventId, 'other_input']],
  )
})

test('a call without a hash is matched by its tool alone', () => {
  const rows = [approval('a', { status: 'REJECTED' })]
  assert.deepEqual(judged(rows, call({ inputHash: null })), [['after_rejection', 'a', 'toolName']])
  const required = decision('REQUIRE_APPROVAL', { inputHash: null })
  const approved = [approval('a', { status: 'APPROVED' })]
  assert.deepEqual(judged(approved, required, call({ inputHash: null })), [['as_approved', 'a', 'toolName']])
})

test('a second call on one approval is reported, unless another approval covers it', () => {
  const one = approval('a', { status: 'APPROVED' })
  const two = approval('b', { status: 'APPROVED', createdAt: CREATED + 1 })
  const expected = [
    ['as_approved', 'a', 'inputHash'],
    ['ran_again', 'a', 'inputHash'],
  ]
  assert.deepEqual(judged([one], call(), call()), expected)
  assert.deepEqual(judged([one, two], call(), call()), [expected[0], ['as_approved', 'b', 'inputHash']])
  // A call that names its approval comes first, at any position.
  assert.deepEqual(judged([one, two], call(), call({ approvalId: 'a' })), [
    ['as_approved', 'b', 'inputHash'],
    ['as_approved', 'a', 'approvalId'],
  ])
})

test('an approval that the environment does not have is reported', () => {
  assert.deepEqual(judged([], call({ approvalId: 'nowhere' })), [['unknown_approval', 'nowhere', 'none']])
})

test('an approval requested by another run is reported; one that names no run may be used', () => {
  const named = call({ approvalId: 'a' })
  assert.deepEqual(judged([approval('a', { status: 'APPROVED', runId: 'other' })], named), [
    ['other_run', 'a', 'approvalId'],
  ])
  assert.deepEqual(judged([approval('a', { status: 'APPROVED', runId: null })], named), [
    ['as_approved', 'a', 'approvalId'],
  ])
  assert.deepEqual(judged([approval('a', { status: 'APPROVED', runId: 'other' })], call()), [])
})

test('a call for which a policy required approval, but none was requested, ran without one', () => {
  const required = decision('REQUIRE_APPROVAL')
  assert.deepEqual(judged([], required, call()), [['without_approval', null, 'none']])
  assert.deepEqual(judged([], call(), required), [['without_approval', null, 'none']])
  assert.deepEqual(judged([], required, call({ inputHash: OTHER_HASH })), [])
  assert.deepEqual(judged([], decision('REQUIRE_APPROVAL', { inputHash: null }), call()), [
    ['without_approval', null, 'none'],
  ])
  // Approval was requested for another input of the tool.
  const rows = [approval('a', { status: 'APPROVED', inputHash: OTHER_HASH })]
  assert.deepEqual(judged(rows, required, call()), [['without_approval', null, 'none']])
})

test('calls unrelated to approvals are left out', () => {
  const rows = [approval('a', { status: 'APPROVED' })]
  const others = [call({ toolName: 'read' }), call({ toolName: null, inputHash: null }), decision('BLOCK')]
  assert.deepEqual(judged(rows, ...others), [])
})

test('judged calls keep the order of the timeline', () => {
  const rows = [approval('a', { status: 'APPROVED' })]
  const events = [call(), call({ approvalId: 'x' }), call({ approvalId: 'a' })]
  const order = linkCalls(RUN, rows, events).map((each) => each.call.eventId)
  assert.deepEqual(
    order,
    events.map(({ eventId }) => eventId),
  )
})

test('every verdict has an explanation in a sentence', () => {
  for (const [verdict, sentence] of Object.entries(CALL_VERDICTS)) assert.match(sentence, /^[A-Z].{20,}/, verdict)
})

test('many calls of one tool read each of many approvals a few times, not once for each call', () => {
  const [asked, called] = [200, 1_000]
  let reads = 0
  const counted = (id: string, given: Partial<ApprovalRow>): ApprovalRow =>
    new Proxy(approval(id, given), { get: (row, name) => (reads++, Reflect.get(row, name) as unknown) })
  for (const inputHash of [HASH, null]) {
    const approvals = Array.from({ length: asked }, (_, n) =>
      counted(`id ${n}`, inputHash === null ? { inputHash: `${OTHER_HASH}${n}` } : {}),
    )
    const calls = Array.from({ length: called }, () => call({ inputHash }))
    reads = 0
    const found = linkCalls(RUN, approvals, calls)
    assert.equal(found.filter(({ approval: row }) => row !== null).length, inputHash === null ? asked : called)
    assert.ok(reads < 10 * (asked + called), `${reads} reads of ${asked} approvals for ${called} calls`)
  }
})
