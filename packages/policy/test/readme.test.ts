import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { POLICY_LIMITS } from '../src/limits.ts'
import { METHODS } from '../src/evaluation/functions.ts'
import { VARIABLES } from '../src/language/variables.ts'
import { condition } from './condition.ts'

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')

test('every example of the guide is a valid condition', () => {
  const lines = [...readme.matchAll(/```cel\n([\s\S]*?)```/g)].flatMap(([, block = '']) => block.split('\n'))
  const examples = lines.filter((line) => line !== '' && !line.startsWith('//'))
  assert.ok(examples.length >= 10)
  for (const example of examples) condition(example)
})

test('the guide names every variable, method and limit', () => {
  const names = [...Object.keys(VARIABLES), ...[...METHODS.keys()].map((key) => key.split('/')[0] as string)]
  for (const name of names) assert.ok(readme.includes(name), name)
  const { cachedConditions: _, ...told } = POLICY_LIMITS
  for (const [name, limit] of Object.entries(told)) assert.ok(readme.includes(limit.toLocaleString('en-US')), name)
})
