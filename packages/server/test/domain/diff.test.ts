import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { diffFields } from '../../src/domain/diff.ts'

const lines = fc.array(fc.constantFrom('', 'a', 'b', 'c', ' '), { maxLength: 12 }).map((each) => each.join('\n'))

/** One of the two texts, rebuilt from the lines of a difference. */
function said(before: string, after: string, kept: 'removed' | 'added'): string[] {
  const [field] = diffFields({ x: before }, { x: after })
  return (field?.lines ?? []).filter(({ change }) => change === 'same' || change === kept).map(({ text }) => text)
}

const split = (text: string) => (text === '' ? [] : text.split('\n'))
/** Removes the last line break if both texts have one. */
const parts = (one: string, other: string) =>
  one.endsWith('\n') && other.endsWith('\n') ? split(one.slice(0, -1)) : split(one)

test('both texts can be read from their difference', () => {
  const property = fc.property(lines, lines, (before, after) => {
    if (before === after) return assert.deepEqual(diffFields({ x: before }, { x: after }), [])
    assert.deepEqual(said(before, after, 'removed').join('\n'), parts(before, after).join('\n'))
    assert.deepEqual(said(before, after, 'added').join('\n'), parts(after, before).join('\n'))
  })
  fc.assert(property)
})

test('only fields that differ are reported, in their order; null is an empty text', () => {
  const fields = diffFields({ a: 'x', b: null, c: 'y', d: null }, { a: 'x', b: 'z', c: null, d: null })
  assert.deepEqual(fields, [
    { field: 'b', lines: [{ change: 'added', text: 'z' }], exact: true },
    { field: 'c', lines: [{ change: 'removed', text: 'y' }], exact: true },
  ])
})

test('the end of the last line counts if one of the texts lacks it', () => {
  assert.deepEqual(diffFields({ x: 'a\nb\n' }, { x: 'a\nb' })[0]?.lines, [
    { change: 'same', text: 'a' },
    { change: 'same', text: 'b' },
    { change: 'removed', text: '' },
  ])
})

test('texts with almost nothing in common are shown whole, without matching lines', () => {
  const text = (word: string) => Array.from({ length: 2_000 }, (_, index) => `${word} ${index}`).join('\n')
  const [field] = diffFields({ x: text('one') }, { x: text('other') })
  assert.equal(field?.exact, false)
  assert.equal(field?.lines.length, 4_000)
  const changed = text('one').replace('one 1500', 'two')
  const [close] = diffFields({ x: text('one') }, { x: changed })
  assert.equal(close?.exact, true)
  assert.equal(close?.lines.filter(({ change }) => change !== 'same').length, 2)
})

test('texts of very many lines are not matched, and each is one', () => {
  const [before, after] = ['a\n'.repeat(100_000), `${'a\n'.repeat(99_999)}b\n`]
  const [field] = diffFields({ x: before }, { x: after })
  assert.deepEqual([field?.exact, field?.lines.length], [false, 2])
  assert.equal(said(before, after, 'removed').join('\n'), before.slice(0, -1))
  assert.equal(said(before, after, 'added').join('\n'), after.slice(0, -1))
  assert.deepEqual(diffFields({ x: '' }, { x: 'a\n'.repeat(20_000) })[0]?.lines.length, 1)
})
