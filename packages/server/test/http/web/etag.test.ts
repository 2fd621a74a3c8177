import assert from 'node:assert/strict'
import { test } from 'node:test'
import { matchesTag } from '../../../src/http/web/files.ts'

const TAG = 'W/"abc"'

test('a tag is matched weakly, alone, in a list, and by *', () => {
  for (const header of [
    'W/"abc"',
    '"abc"',
    '*',
    ' * ',
    '"x", W/"abc"',
    'W/"x","abc","y"',
    '"a,b" , "abc"',
    '"",W/"abc"',
    '  W/"abc"  ',
  ]) {
    assert.equal(matchesTag(header, TAG), true, header)
  }
})

test('other tags do not match', () => {
  for (const header of [
    '',
    'abc',
    'W/abc',
    '"ab"',
    '"abcd"',
    '"ABC"',
    'W/"x", "y"',
    '"x, abc"',
    '"*"',
    'W/*',
    '"abc',
    'abc"',
    "'abc'",
  ]) {
    assert.equal(matchesTag(header, TAG), false, header)
  }
  assert.equal(matchesTag(undefined, TAG), false)
})

test('a long list is matched in linear time', () => {
  const header = Array.from({ length: 1000 }, (_, index) => `"tag-${index}"`).join(', ')
  assert.equal(matchesTag(header, TAG), false)
  assert.equal(matchesTag(`${header}, "abc"`, TAG), true)
  assert.equal(matchesTag('"'.repeat(16_000), TAG), false)
  assert.equal(matchesTag(`"${'a'.repeat(16_000)}`, TAG), false)
})
