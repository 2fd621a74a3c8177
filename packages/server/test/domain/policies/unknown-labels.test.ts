import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileCondition } from '@tacho/policy/compile.ts'
import { unknownLabels } from '../../../src/domain/policies/policy.ts'

const rules = [
  { tool: 'pay', does: ['money'] },
  { tool: 'list_accounts', output: ['ours'] },
]

function warned(source: string): string | null {
  const compiled = compileCondition(source)
  assert.ok(compiled.ok, source)
  return unknownLabels(compiled.condition, rules)
}

test('a label that no rule gives is reported, wherever a condition can name one', () => {
  const misspelt = 'No rule gives the label mony; did you mean money?'
  for (const source of [
    '"mony" in tool.labels',
    'tool.name == "a" || !("mony" in run.labels)',
    'run.calls.exists(c, "mony" in c.labels)',
    'tool.labels.exists(l, l == "mony")',
    'origin(tool.input.to).exists(o, o in ["user", "mony"])',
    '"mony" in origin(tool.input.to)',
  ]) {
    assert.equal(warned(source), misspelt, source)
  }
  assert.match(
    warned('"zzzzzz" in run.labels') ?? '',
    /^No rule gives the label zzzzzz; only a client that sets labels in code can match$/,
  )
  assert.match(warned('"a9" in run.labels && "b9" in tool.labels') ?? '', /^No rule gives the labels a9, b9; /)
})

test('labels with a rule, labels of clients, and other texts are not reported', () => {
  for (const source of [
    '"money" in tool.labels && !origin(tool.input.account).exists(o, o in ["user", "ours"])',
    '"unknown" in run.labels || "unlabelled" in run.labels',
    '["pay", "send"].exists(word, "user" in origin(word))',
    '"mony" in tool.input.labels || tool.name in ["mony"] || tool.input.items.exists(i, i == "mony")',
  ]) {
    assert.equal(warned(source), null, source)
  }
})
