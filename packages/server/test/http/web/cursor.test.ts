import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { anyCharacter } from '../../../../contract/test/any-character.ts'
import { cursors } from '../../../src/http/web/paging.ts'

const { write, read } = cursors('secret')

test('a cursor returns its position in the list it was made for, and in no other', () => {
  const cursor = write(['env', 'runs', undefined], { startedAt: 1, id: 'x' })
  assert.deepEqual(read(['env', 'runs', undefined], cursor), { startedAt: 1, id: 'x' })
  assert.equal(read(['env', 'runs', 'FAILED'], cursor), null)
  assert.equal(read(['other', 'runs', undefined], cursor), null)
  assert.equal(cursors('another secret').read(['env', 'runs', undefined], cursor), null)
})

test('a cursor changed in any character is rejected', () => {
  const cursor = write(['env'], { seq: 12 })
  fc.assert(
    fc.property(fc.nat(cursor.length - 1), fc.string({ minLength: 1, maxLength: 1 }), (at, char) => {
      fc.pre(cursor[at] !== char)
      assert.equal(read(['env'], cursor.slice(0, at) + char + cursor.slice(at + 1)), null)
    }),
  )
})

test('parsing never throws, whatever the text', () => {
  fc.assert(fc.property(fc.string({ unit: anyCharacter }), (text) => read(['env'], text) === null))
  for (const text of ['.', 'a.', '.a', 'bnVsbA.', '']) assert.equal(read(['env'], text), null)
})
