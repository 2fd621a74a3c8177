/** The failure that a run stores, and the place where it happened. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FailurePlace } from '@tacho/contract/issues/failure.ts'
import {
  failurePlace,
  failureText,
  foundFailure,
  isFailureText,
  keptFailure,
  readFailure,
  type RunFailure,
} from '../../../src/storage/record/failure.ts'

const RUN: FailurePlace = { kind: 'run', name: null }
const tool = (name: string): FailurePlace => ({ kind: 'tool', name })

type Told = [place: FailurePlace, errorClass: string | null, message: string | null]

function kept(events: Told[]): RunFailure {
  const found = events.map(([place, errorClass, message], index) => {
    const isFinal = index === events.length - 1
    return foundFailure({ place, errorClass, message }, { eventId: `e${index}`, time: index, isFinal })
  })
  const inOrder = found.reduce<RunFailure | null>(keptFailure, null)
  const reversed = found.toReversed().reduce<RunFailure | null>(keptFailure, null)
  assert.deepEqual(reversed, inOrder, 'in any order the same')
  return inOrder as RunFailure
}

test('the end of a run is where the tool failed whose error it repeats, in whatever order they arrive', () => {
  const end: Told = [RUN, 'TimeoutError', 'no answer']
  const cases: [Told[], FailurePlace][] = [
    [[[tool('get_order'), 'TimeoutError', 'no answer'], end], tool('get_order')],
    [
      [[tool('get_order'), 'TimeoutError', 'no answer'], [tool('pay'), 'AbortError', 'aborted'], end],
      tool('get_order'),
    ],
    [
      [
        [tool('get_order'), 'TimeoutError', 'no answer'],
        [{ kind: 'step', name: 'work' }, 'TimeoutError', 'no answer'],
        end,
      ],
      tool('get_order'),
    ],
    [[[tool('get_order'), 'TimeoutError', 'another message'], end], RUN],
    [[[tool('get_order'), 'ValueError', 'no answer'], end], RUN],
    [[[tool('get_order'), null, 'no answer'], end], tool('get_order')],
    // In metadata-only mode, events have no messages.
    [
      [
        [tool('get_order'), 'TimeoutError', null],
        [RUN, 'TimeoutError', null],
      ],
      tool('get_order'),
    ],
    [
      [
        [tool('get_order'), null, null],
        [RUN, null, null],
      ],
      RUN,
    ],
  ]
  for (const [events, place] of cases) assert.deepEqual(failurePlace(kept(events)), place, JSON.stringify(events))
})

test('after retention the class finds the tool, unless several failed with it', () => {
  const end: Told = [RUN, 'TimeoutError', 'no answer']
  const one = kept([[tool('get_order'), 'TimeoutError', 'no answer'], end])
  assert.deepEqual(failurePlace({ ...one, message: null }), tool('get_order'))
  const two = kept([[tool('get_order'), 'TimeoutError', 'no answer'], [tool('pay'), 'TimeoutError', 'other'], end])
  assert.deepEqual(failurePlace(two), tool('get_order'))
  assert.deepEqual(failurePlace({ ...two, message: null }), RUN)
})

test('a row keeps the last four tools that failed, each error once, and no message', () => {
  const events = Array.from({ length: 12 }, (_, index): Told => [
    tool(`t${index % 6}`),
    'TimeoutError',
    `no ${index % 6}`,
  ])
  const text = failureText(kept([...events, [RUN, 'OrderError', 'secret words']])) ?? ''
  assert.ok(!text.includes('secret words') && !text.includes('no 1'), text)
  assert.deepEqual(
    readFailure(text, null)?.failed.map(({ time, place }) => [time, place.name]),
    [
      [11, 't5'],
      [10, 't4'],
      [9, 't3'],
      [8, 't2'],
    ],
  )
  assert.ok(isFailureText(text))
})

test('a row of an earlier version has no failed places; a wrong one from outside is refused', () => {
  const earlier = '["e1",5,1,"TimeoutError","run",null]'
  assert.deepEqual(readFailure(earlier, 'no answer')?.failed, [])
  assert.ok(isFailureText(earlier) && isFailureText(null))
  const place = '[1,"E","mark","tool","get_order"]'
  const row = (places: string): string => `["e1",5,1,"E","run",null,${places}]`
  assert.ok(isFailureText(row(`[${place}]`)))
  for (const places of [
    '1',
    '[1]',
    '[[1,"E","mark","x","y"]]',
    '[["1","E","mark","tool","y"]]',
    `[${Array(5).fill(place).join()}]`,
  ])
    assert.ok(!isFailureText(row(places)), places)
})
