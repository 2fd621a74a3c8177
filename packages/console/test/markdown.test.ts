import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Tokens } from 'marked'
import { stepName } from '../src/runs/page/notes.ts'
import { plainText } from '../src/web/text/format.ts'
import { tokensOf } from '../src/web/text/markdown-tokens.ts'

test('a table has no more cells than characters', () => {
  const wide = `${'|a'.repeat(1_000)}|\n${'|-'.repeat(1_000)}|\n${'a\n'.repeat(2_990)}`
  assert.deepEqual(
    tokensOf(wide)?.map(({ type, raw }) => [type, raw.length]),
    [['paragraph', wide.length]],
  )
  const [table] = tokensOf('| a | b | c |\n|---|---|---|\n| 1 |\n| 4 | 5 | 6 |\n\nafter') ?? []
  assert.equal(table?.type, 'table')
  assert.deepEqual(
    (table as Tokens.Table).rows.map((row) => row.map(({ text }) => text)),
    [
      ['1', '', ''],
      ['4', '5', '6'],
    ],
  )
  assert.equal(tokensOf('|a|b|\n|-|-|\n'.repeat(3))?.[0]?.type, 'table')
})

test('a text that nests too deep is none', () => {
  assert.equal(tokensOf('> '.repeat(5_000)), null)
})

test('a line in a list has no marks of Markdown, and keeps signs that are none', () => {
  assert.equal(
    plainText('Your **order** is *on its way*: see [the page](https://example.com/a)'),
    'Your order is on its way: see the page',
  )
  assert.equal(plainText('## Use `get_order`'), 'Use get_order')
  assert.equal(plainText('2 * 3 * 4 = 24, snake_case_name, a**b'), '2 * 3 * 4 = 24, snake_case_name, a**b')
  assert.equal(plainText('[1] is no link'), '[1] is no link')
  assert.equal(stepName({ eventType: 'LLM_CALL', label: '- **Refund** it' }), 'Refund it')
  assert.equal(stepName({ eventType: 'TOOL_CALL', label: '__init__' }), '__init__')
})
