/** The steps of a run, as they arrive page by page. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventRow } from '@tacho/contract/record/event.ts'
import fc from 'fast-check'
import { withRows, type Step } from '../src/runs/queries.ts'

const rowAt = (time: number, number: number) =>
  ({ eventId: String(number), timestamp: new Date(time).toISOString() }) as EventRow

test('in whatever order pages arrive, the steps are those of the whole run by time', () => {
  const pages = fc.array(fc.array(fc.nat(20), { minLength: 1, maxLength: 6 }), { maxLength: 8 })
  fc.assert(
    fc.property(pages, (times) => {
      let number = 0
      const rows = times.map((page) => page.map((time) => rowAt(time, number++)))
      const steps = rows.reduce<Step[]>(withRows, [])
      const whole = rows.flat().toSorted((a, b) => Date.parse(a.timestamp) - Date.parse(b.timestamp))
      assert.deepEqual(
        steps.map(({ eventId, index, time, gap }) => ({ eventId, index, time, gap })),
        whole.map(({ eventId, timestamp }, index) => {
          const time = Date.parse(timestamp)
          const before = whole[index - 1]
          return { eventId, index, time, gap: before ? time - Date.parse(before.timestamp) : 0 }
        }),
      )
    }),
  )
})

test('steps stay the same objects when later ones arrive, and never change', () => {
  const early = withRows([], [rowAt(1, 1), rowAt(5, 2)])
  const copy = structuredClone(early)
  const later = withRows(early, [rowAt(9, 3)])
  assert.ok(later[0] === early[0] && later[1] === early[1])
  const between = withRows(later, [rowAt(3, 4)])
  assert.deepEqual(early, copy)
  assert.equal(between[0], early[0])
  assert.deepEqual(
    between.map(({ eventId, index, gap }) => [eventId, index, gap]),
    [
      ['1', 0, 0],
      ['4', 1, 2],
      ['2', 2, 2],
      ['3', 3, 4],
    ],
  )
})
