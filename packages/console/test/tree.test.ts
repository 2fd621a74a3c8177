/** The steps of a run as a tree of its spans: order, branches, loops, and steps that are never folded. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { barsOf } from '@tacho/contract/runs/timeline.ts'
import fc from 'fast-check'
import type { Step } from '../src/runs/queries.ts'
import { covers, foldableAt, NO_FOLDS, treeOf, turned, unfolded, type Branch, type Row } from '../src/runs/page/tree.ts'

interface Given {
  span?: string | null
  parent?: string | null
  latency?: number
  label?: string
  tokens?: number
  cost?: number
}

const step = (
  eventId: string,
  time: number,
  { span = null, parent = null, latency, label = eventId, tokens, cost }: Given = {},
) =>
  ({
    eventId,
    eventType: 'TOOL_CALL',
    label,
    time,
    spanId: span,
    parentSpanId: parent,
    latency: latency ?? null,
    tokens: tokens ?? null,
    cost: cost ?? null,
  }) as Step

/** The steps in the order of the page. */
const inOrder = (steps: Step[]): Step[] =>
  steps.toSorted((a, b) => a.time - b.time).map((one, index) => ({ ...one, index }))

const tree = (given: Step[], alike: (step: Step) => string = () => '') => {
  const steps = inOrder(given)
  return treeOf(steps, barsOf(steps), alike)
}
const drawn = (rows: readonly Branch[]) => rows.map(({ step, depth }) => `${'.'.repeat(depth)}${step.eventId}`)

const shown = (rows: readonly Branch[], at: number) => unfolded(rows, NO_FOLDS, undefined)[at] as Row

const AGENT = [
  step('ask', 0, { span: 'root' }),
  // Both sub-agents run at the same time; each call is recorded when it has ended.
  step('b done', 900, { span: 'b', parent: 'root', latency: 700 }),
  step('a done', 800, { span: 'a', parent: 'root', latency: 700 }),
  step('a looks', 300, { span: 'a1', parent: 'a', latency: 100 }),
  step('b looks', 400, { span: 'b1', parent: 'b', latency: 100 }),
  step('a pays', 500, { span: 'a2', parent: 'a' }),
  step('end', 1_000, { span: 'root' }),
]

test('branches stand together in the order of their start, and say how much is below and until when', () => {
  const rows = tree(AGENT)
  assert.deepEqual(drawn(rows), ['ask', '.a done', '..a looks', '..a pays', '.b done', '..b looks', 'end'])
  assert.deepEqual(
    rows.map(({ below, to }) => [below, to]),
    [
      [5, 900],
      [2, 800],
      [0, 300],
      [0, 500],
      [1, 900],
      [0, 400],
      [0, 1_000],
    ],
  )
})

test('a branch has the tokens and the cost of all that is below it, and a loop those of its steps', () => {
  const rows = tree([
    step('ask', 0, { span: 'root' }),
    step('plan', 100, { span: 'p', parent: 'root', tokens: 10, cost: 0.5 }),
    step('a', 200, { span: 'a', parent: 'root', tokens: 7 }),
    ...[1, 2, 3, 4].map((n) =>
      step(`a${n}`, 200 + n, { span: `a${n}`, parent: 'a', label: 'again', tokens: n, cost: n / 4 }),
    ),
    step('end', 900, { span: 'root' }),
  ])
  const sums = rows.map(({ step, tokens, cost }) => `${step.eventId} ${tokens} ${cost}`)
  assert.deepEqual(sums.slice(0, 4), ['ask 27 3', 'plan 10 0.5', 'a 17 2.5', 'a1 10 2.5'])
  assert.deepEqual(sums.slice(4), ['a2 2 0.5', 'a3 3 0.75', 'a4 4 1', 'end 0 0'])
  assert.equal(rows[3]?.times, 4)
})

test('a folded branch hides what is below it, but never the step that is open', () => {
  const rows = tree(AGENT)
  const folds = turned(shown(rows, 1), NO_FOLDS)
  assert.deepEqual(drawn(unfolded(rows, folds, undefined)), ['ask', '.a done', '.b done', '..b looks', 'end'])
  assert.equal(unfolded(rows, folds, 'a pays').length, rows.length)
  assert.equal(unfolded(rows, turned(unfolded(rows, folds, undefined)[1] as Row, folds), undefined).length, rows.length)
  assert.ok(covers(rows, rows[1] as Branch, 'a pays'))
  assert.ok(!covers(rows, rows[1] as Branch, 'b looks'))
  assert.equal(foldableAt(rows, step('a pays', 0))?.step.eventId, 'a done')
  assert.equal(foldableAt(rows, step('end', 0)), undefined)
})

test('four or more steps in a row that do the same and end alike are one row', () => {
  const calls = Array.from({ length: 9 }, (_, n) => step(`c${n}`, n, { label: n === 8 ? 'other' : 'get_order' }))
  const failed = (one: Step) => (one.eventId === 'c4' ? 'failed' : '')
  assert.deepEqual(
    tree(calls).map(({ times }) => times),
    [8, 1, 1, 1, 1, 1, 1, 1, 1],
  )
  const rows = tree(calls, failed)
  assert.deepEqual(drawn(unfolded(rows, NO_FOLDS, undefined)), ['c0', 'c4', 'c5', 'c6', 'c7', 'c8'])
  assert.equal(rows[0]?.times, 4)
  assert.equal(unfolded(rows, turned(shown(rows, 0), NO_FOLDS), undefined).length, 9)
})

test('however spans name each other, each step is there once', () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f')
  const given = fc.array(fc.record({ span: fc.option(name), parent: fc.option(name), time: fc.nat(9) }), {
    maxLength: 30,
  })
  fc.assert(
    fc.property(given, (all) => {
      const rows = tree(all.map(({ span, parent, time }, n) => step(`e${n}`, time, { span, parent })))
      assert.deepEqual(rows.map(({ step }) => step.eventId).toSorted(), all.map((_, n) => `e${n}`).toSorted())
      const folds = rows.reduce((folds, row) => turned({ ...row, isClosed: row.times > 1 }, folds), NO_FOLDS)
      const seen = unfolded(rows, folds, undefined)
      assert.ok(seen.every(({ depth }) => depth === 0) || rows.some(({ times }) => times > 1))
    }),
  )
})

test('thousands of spans inside of each other take no longer than as many beside each other', () => {
  const deep = Array.from({ length: 30_000 }, (_, n) =>
    step(`e${n}`, n, { span: `s${n}`, parent: n > 0 ? `s${n - 1}` : null }),
  )
  const rows = tree(deep)
  assert.equal(rows.length, 30_000)
  assert.equal(rows[0]?.below, 29_999)
})
