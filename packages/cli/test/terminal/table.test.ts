import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { cutEnd, cutMiddle, widthOf } from '../../src/engine/text-width.ts'
import type { Look } from '../../src/engine/display.ts'
import { isShortFor, shortIds, tablePages, type Column } from '../../src/engine/table.ts'

const NOW = Date.UTC(2026, 10, 22, 12)
const PIPE: Look = { width: null, isExact: false, now: NOW }
const terminal = (width: number): Look => ({ ...PIPE, width })

test('columns fit their widest cell, and numbers are right-aligned', () => {
  const columns: Column[] = [{ title: 'NAME' }, { title: 'N', align: 'right' }]
  const rows = [
    ['a', '1'],
    ['longer', '22'],
  ]
  assert.deepEqual(tablePages(columns, PIPE)(rows), ['NAME     N', 'a        1', 'longer  22'])
  assert.deepEqual(tablePages(columns, terminal(80))(rows), ['NAME     N', 'a        1', 'longer  22'])
})

const RUNS: Column[] = [
  { title: 'STARTED', as: 'time' },
  { title: 'STATUS', as: 'word' },
  { title: 'RUN' },
  { title: 'SESSION', isOptional: true },
  { title: 'COST', align: 'right' },
]

test('no line is wider than the terminal; ids are cut in the middle, numbers and words never', () => {
  const row = [
    new Date(NOW - 90_000).toISOString(),
    'COMPLETED',
    `import-${'0123456789'.repeat(5)}-end`,
    's'.repeat(90),
  ]
  fc.assert(
    fc.property(fc.integer({ min: 45, max: 200 }), fc.string({ unit: 'grapheme' }), (width, name) => {
      const lines = tablePages(
        RUNS,
        terminal(width),
      )([
        [...row, '0.0123'],
        [row[0] ?? '', 'FAILED', name, '', '12'],
      ])
      for (const line of lines) assert.ok(widthOf(line) <= width, line)
      assert.match(lines[1] ?? '', /^1 m ago +COMPLETED +import-.*…?.*end.* 0\.0123$/)
    }),
  )
})

test('in a pipe nothing is cut, shortened or relative; --utc keeps times exact on a terminal', () => {
  const time = '2026-11-22T11:59:00.000Z'
  const row = [time, 'COMPLETED', 'r'.repeat(200), 's'.repeat(200), '1']
  assert.ok(tablePages(RUNS, PIPE)([row])[1]?.startsWith(`${time}  COMPLETED  ${'r'.repeat(200)}  ${'s'.repeat(200)}`))
  const exact = { ...terminal(80), isExact: true }
  assert.match(tablePages(RUNS, exact)([row])[1] ?? '', /^2026-11-22T11:59:00\.000Z {2}COMPLETED/)
})

test('a sentence keeps its room: the others are cut or left out first', () => {
  const columns: Column[] = [
    { title: 'STARTED', as: 'time' },
    { title: 'STATUS', as: 'word' },
    { title: 'WHY', as: 'text' },
    { title: 'RUN' },
    { title: 'AGENT' },
    { title: 'COST', align: 'right', isOptional: true },
  ]
  const started = new Date(NOW - 59 * 60_000).toISOString()
  const why = 'TimeoutError in get_order: no answer after 5,000 ms for order 1007'
  const row = [started, 'FAILED', why, 'r'.repeat(36), 'Support agent', '$0.0031']
  const at = (width: number) => tablePages(columns, terminal(width))([row])[1] ?? ''
  assert.match(at(80), /^59 m ago {2}FAILED {2}TimeoutError in get_order: no a.*… {2}r+…r+ {2}Supp/)
  assert.match(at(100), /^59 m ago {2}FAILED {2}TimeoutError in get_order: no answer.*… /)
  assert.ok(at(160).includes(`${why}  ${'r'.repeat(10)}`) && at(160).endsWith('$0.0031'))
  for (const width of [60, 80, 100, 160]) assert.ok(widthOf(at(width)) <= width)
})

test('an optional column is left out where the others have no room, on all pages', () => {
  const row = ['2026-11-22T11:59:00.000Z', 'COMPLETED', 'r'.repeat(40), 'session', '1']
  const [wide, narrow] = [tablePages(RUNS, terminal(120)), tablePages(RUNS, terminal(45))]
  assert.match(wide([row])[0] ?? '', /SESSION/)
  assert.doesNotMatch(narrow([row]).join('\n'), /SESSION|session/)
  assert.doesNotMatch(narrow([row]).join('\n'), /SESSION|session/)
})

test('text is cut between whole characters and never wider than asked', () => {
  assert.equal(cutMiddle('abcdefghij', 5), 'ab…ij')
  assert.equal(cutMiddle('abcde', 5), 'abcde')
  assert.equal(cutEnd('a sentence', 5), 'a se…')
  assert.equal(cutEnd('a se… and more', 6), 'a se…')
  assert.equal(cutMiddle('日本語日本語', 7), '日…語')
  assert.equal(widthOf('👩‍👩‍👧'), 2)
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 40 }), (text, size) => {
      for (const cut of [cutMiddle, cutEnd]) assert.ok(widthOf(cut(text, size)) <= size)
    }),
  )
})

test('the shortest beginnings that differ, at least 8 characters, stand for the ids of a list', () => {
  const ids = ['01a20313-2cc0-7000-8000-000000000001', '01a20313-2cf0-7000-8000-000000000001']
  assert.deepEqual(shortIds(ids), ['01a20313-2cc', '01a20313-2cf'])
  assert.deepEqual(shortIds(ids.slice(0, 1)), ['01a20313'])
  assert.deepEqual(shortIds(['order-4711', '']), ['order-4711', ''])
  fc.assert(
    fc.property(fc.uniqueArray(fc.uuid(), { minLength: 1 }), (all) => {
      shortIds(all).forEach((short, at) => {
        assert.deepEqual(
          all.filter((id) => isShortFor(short, id)),
          [all[at]],
        )
      })
    }),
  )
})

test('a beginning, or what a cut cell shows, is short for an id', () => {
  assert.ok(isShortFor('ord', 'order-4711') && isShortFor('or…11', 'order-4711') && isShortFor('…11', 'order-4711'))
  assert.ok(!isShortFor('4711', 'order-4711') && !isShortFor('order…4711x', 'order-4711'))
  assert.ok(!isShortFor('order-471…4711', 'order-4711'), 'beginning and end must not overlap')
})
