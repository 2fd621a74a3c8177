import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { diffFields } from '../../../src/domain/policies/diff.ts'

const lines = fc.array(fc.constantFrom('', 'a', 'b', 'c', ' '), { maxLength: 12 }).map((each) => each.join('\n'))

/** Rebuilds one of the two texts from the lines of their difference. */
async function said(before: string, after: string, kept: 'removed' | 'added'): Promise<string[]> {
  const [field] = await diffFields({ x: before }, { x: after })
  return (field?.lines ?? []).filter(({ change }) => change === 'same' || change === kept).map(({ text }) => text)
}

const split = (text: string) => (text === '' ? [] : text.split('\n'))
/** Removes the last line break if both texts have one. */
const parts = (one: string, other: string) =>
  one.endsWith('\n') && other.endsWith('\n') ? split(one.slice(0, -1)) : split(one)

test('both texts can be read from their difference', async () => {
  const property = fc.asyncProperty(lines, lines, async (before, after) => {
    if (before === after) return assert.deepEqual(await diffFields({ x: before }, { x: after }), [])
    assert.deepEqual((await said(before, after, 'removed')).join('\n'), parts(before, after).join('\n'))
    assert.deepEqual((await said(before, after, 'added')).join('\n'), parts(after, before).join('\n'))
  })
  await fc.assert(property)
})

test('only fields that differ are reported, in their order; null is an empty text', async () => {
  const fields = await diffFields({ a: 'x', b: null, c: 'y', d: null }, { a: 'x', b: 'z', c: null, d: null })
  assert.deepEqual(fields, [
    { field: 'b', lines: [{ change: 'added', text: 'z' }], exact: true },
    { field: 'c', lines: [{ change: 'removed', text: 'y' }], exact: true },
  ])
})

test('the end of the last line counts if one of the texts lacks it', async () => {
  assert.deepEqual((await diffFields({ x: 'a\nb\n' }, { x: 'a\nb' }))[0]?.lines, [
    { change: 'same', text: 'a' },
    { change: 'same', text: 'b' },
    { change: 'removed', text: '' },
  ])
})

test('texts with almost nothing in common are shown whole, without matching lines', async () => {
  const text = (word: string) => Array.from({ length: 2_000 }, (_, index) => `${word} ${index}`).join('\n')
  const [field] = await diffFields({ x: text('one') }, { x: text('other') })
  assert.equal(field?.exact, false)
  assert.equal(field?.lines.length, 4_000)
  const changed = text('one').replace('one 1500', 'two')
  const [close] = await diffFields({ x: text('one') }, { x: changed })
  assert.equal(close?.exact, true)
  assert.equal(close?.lines.filter(({ change }) => change !== 'same').length, 2)
})

test('texts of very many lines are not matched, and each is one', async () => {
  const [before, after] = ['a\n'.repeat(100_000), `${'a\n'.repeat(99_999)}b\n`]
  const [field] = await diffFields({ x: before }, { x: after })
  assert.deepEqual([field?.exact, field?.lines.length], [false, 2])
  assert.equal((await said(before, after, 'removed')).join('\n'), before.slice(0, -1))
  assert.equal((await said(before, after, 'added')).join('\n'), after.slice(0, -1))
  assert.deepEqual((await diffFields({ x: '' }, { x: 'a\n'.repeat(20_000) }))[0]?.lines.length, 1)
})

test('the event loop turns while lines are matched', async () => {
  const text = (word: string) => Array.from({ length: 500 }, (_, index) => `${word} ${index}`).join('\n')
  let turns = 0
  const counting = setInterval(() => turns++, 0)
  await diffFields({ x: text('one') }, { x: text('other') })
  clearInterval(counting)
  assert.ok(turns >= 10, `${turns} turns`)
})
