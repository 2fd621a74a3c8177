/** The choice of a good run to compare a failed one with: the same question, and the same tools up to the failure. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { callsLikeness, callsOf, comparableRuns, likelyRuns, questionLikeness } from '../src/runs/page/alike-runs.ts'
import { partingText } from '../src/runs/compare/parting.ts'
import type { Step } from '../src/runs/queries.ts'

test('questions are alike by their words, whatever the ids and amounts in them', () => {
  assert.equal(questionLikeness('Refund order A-15845', 'Refund order B-9'), 1)
  assert.equal(questionLikeness('Cancel HAT083 for 250 EUR', 'Cancel LAX9 for 1,300.50 EUR'), 1)
  assert.ok(questionLikeness('Refund it', 'Where is my parcel?') === 0)
  assert.equal(questionLikeness('Wo ist mein Paket?', 'Wo ist meine Bestellung?'), 2 / 6)
  assert.equal(questionLikeness(null, null), 0)
  assert.equal(questionLikeness('42', '???'), 0)
})

test('tools are alike as far as a run begins with those before the failure', () => {
  assert.equal(callsLikeness(['a', 'b'], ['a', 'b', 'c']), 1)
  assert.equal(callsLikeness(['a', 'b'], ['a', 'c']), 0.5)
  assert.equal(callsLikeness(['a', 'b'], ['b', 'a']), 0)
  assert.equal(callsLikeness([], ['a']), 1)
  // The failed run repeated the tool that failed. In a good run, the tool answered the first call.
  assert.equal(callsLikeness(['a', 'b', 'b', 'b'], ['a', 'b', 'c']), 1)
  const row = (eventId: string, eventType: string, label: string) => ({ eventId, eventType, label })
  const rows = [
    row('1', 'TOOL_CALL', 'get'),
    row('2', 'LLM_CALL', 'Hm'),
    row('3', 'TOOL_CALL', 'pay'),
    row('4', 'TOOL_CALL', 'x'),
  ]
  assert.deepEqual(callsOf(rows, '3'), ['get'])
  assert.deepEqual(callsOf(rows), ['get', 'pay', 'x'])
})

test('a run is good only if question and tools are alike; otherwise three are offered', () => {
  const run = (title: string, ...calls: string[]) => ({ run: { title }, calls })
  const failed = { title: 'Refund order A-1', calls: ['get_order', 'track_parcel'] }
  const good = run('Refund order A-2', 'get_order', 'track_parcel', 'refund_payment')
  assert.equal(comparableRuns(failed, [run('Refund order A-3', 'search'), good]).good, good.run)
  const others = [
    run('Where is my parcel?', 'get_order', 'track_parcel'),
    run('Refund order A-3', 'search'),
    run('Hello'),
    run('Good day', 'get_order'),
  ]
  const { good: none, candidates } = comparableRuns(failed, others)
  assert.equal(none, null)
  assert.deepEqual(
    candidates.map(({ run: { title } }) => title),
    ['Where is my parcel?', 'Refund order A-3', 'Good day'],
  )
  assert.deepEqual(comparableRuns(failed, []), { good: null, candidates: [] })
})

test('runs that were asked the same do not push those out that were asked something else', () => {
  const parcels = Array.from({ length: 9 }, (_, place) => ({ title: `Where is my order A-${place}?` }))
  const broken = { title: 'The bike of order A-77 never worked. I want my money back.' }
  const likely = likelyRuns('Please cancel order A-1 and refund it.', [...parcels, broken], 8)
  assert.equal(likely.length, 4)
  assert.ok(likely.includes(broken))
  const { candidates } = comparableRuns(
    { title: 'Please cancel order A-1 and refund it.', calls: ['get', 'pay'] },
    likely.map((run) => ({ run, calls: ['get'] })),
  )
  assert.deepEqual(
    candidates.map(({ run }) => run),
    [parcels[0], broken, parcels[1]],
  )
})

test('the first sentence says where two runs part', () => {
  const step = (index: number, label: string, eventType = 'TOOL_CALL') =>
    ({ index, label, eventType, eventId: `${label} ${index}` }) as Step
  const failure = (...eventIds: string[]) =>
    new Map(eventIds.map((id) => [id, { is: 'FAILED' as const, word: 'failed', why: 'Provider answered 503' }]))
  const none = failure()
  const both = (index: number, label: string, type?: string) => ({
    a: step(index, label, type),
    b: step(index, label, type),
  })
  const same = [both(0, 'Refund it', 'USER_INPUT'), both(1, 'track_parcel'), both(2, 'refund_payment')]
  assert.equal(
    partingText(same, { a: none, b: failure('refund_payment 2') }),
    'They part at step 3: track_parcel, then refund_payment → 503; in the first run it did not fail.',
  )
  assert.equal(partingText(same, { a: none, b: none }), null)
  // A failed outcome repeats the error of an earlier tool.
  const ended = [...same, both(3, 'End', 'SESSION_OUTCOME')]
  assert.equal(
    partingText(ended, { a: none, b: failure('refund_payment 2', 'End 3') }),
    'They part at step 3: track_parcel, then refund_payment → 503; in the first run it did not fail.',
  )
  assert.equal(
    partingText(ended, { a: none, b: failure('End 3') }),
    'They part at step 4: refund_payment, then End → 503; in the first run it did not fail.',
  )
  // Both failed in the same step, so it explains nothing.
  assert.equal(
    partingText(ended, { a: failure('refund_payment 2'), b: failure('refund_payment 2', 'End 3') }),
    'They part at step 4: refund_payment, then End → 503; in the first run it did not fail.',
  )
  // A call that only one run made, because a policy blocked it in the other.
  const judged = [
    both(0, 'track_parcel'),
    { a: step(1, 'refund_payment'), b: null },
    { a: null, b: step(1, 'refund_payment', 'POLICY_DECISION') },
  ]
  const blocked = new Map([['refund_payment 1', { is: 'BLOCKED' as const, word: 'blocked', why: 'by a policy' }]])
  assert.equal(
    partingText(judged, { a: none, b: blocked }),
    'They part at step 2: track_parcel, then refund_payment → blocked; in the first run it was not.',
  )
  const other = [
    both(0, 'track_parcel'),
    { a: step(1, 'get_order'), b: null },
    { a: null, b: step(1, 'refund_payment') },
  ]
  assert.equal(
    partingText(other, { a: none, b: failure('refund_payment 1') }),
    'They part at step 2: track_parcel, then refund_payment → 503 in the second run, get_order in the first.',
  )
  assert.equal(
    partingText([both(0, 'track_parcel'), { a: null, b: step(1, 'refund_payment') }], { a: none, b: none }),
    'They part at step 2: track_parcel, then refund_payment, only in the second run.',
  )
})
