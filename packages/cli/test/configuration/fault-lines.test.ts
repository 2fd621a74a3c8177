import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileCondition } from '@tacho/policy/compile.ts'
import { faultLines } from '../../src/policies/check.ts'

function linesOf(source: string): string[] {
  const compiled = compileCondition(source)
  assert.ok(!compiled.ok)
  const [fault] = compiled.faults
  assert.ok(fault)
  return faultLines('policy.cel', source, fault)
}

test('a fault shows its line with a caret below the position', () => {
  const [head, line, caret] = linesOf('tool.name == "a" &&\n  tool.nam == "b"')
  assert.match(head ?? '', /^policy\.cel:2:3: /)
  assert.deepEqual([line, caret], ['    tool.nam == "b"', '    ^~~~~~~~'])
})

test('the caret is aligned after tabs, wide characters and Windows line ends', () => {
  assert.deepEqual(linesOf('true &&\r\n\tamount').slice(1), ['   amount', '   ^~~~~~'])
  const [, line = '', caret = ''] = linesOf('"🙂" == tool.nam')
  assert.equal(Array.from(line).slice(caret.indexOf('^')).join(''), 'tool.nam')
})

test('a fault at the end of a source, or in an empty one, has a position', () => {
  assert.equal(linesOf('true &&').at(-1)?.trim(), '^')
  assert.deepEqual(linesOf('').slice(1), ['  ', '  ^'])
})

test('control characters of a source are escaped', () => {
  assert.ok(!linesOf('amount // \u001b[2J').join('\n').includes('\u001b'))
})
