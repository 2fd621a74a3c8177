import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { compileCondition, keepConditionsIn } from '@tacho/policy/compile.ts'
import { evaluate } from '@tacho/policy/evaluate.ts'
import { openKeptConditions } from '../../src/hook/kept-conditions.ts'

const ACCOUNT = { url: 'http://localhost:4680', apiKey: 'tacho_key' }
const CONDITIONS = [
  'tool.name.matches("(?i)\\\\brm\\\\s+-rf") || run.toolCalls >= 9007199254740993',
  'tool.name.matches("[^a-z😀]+ü$") && tool.name.matches("k")',
  'tool.name == "k"',
]

let directory: string
let file: string
before(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'tacho-conditions-'))
  file = path.join(directory, 'conditions')
})
after(() => {
  keepConditionsIn(undefined)
  rmSync(directory, { recursive: true })
})

function keep(sources: readonly string[]): void {
  const conditions = openKeptConditions(directory, ACCOUNT)
  keepConditionsIn(conditions)
  for (const source of sources) assert.ok(compileCondition(source).ok)
  conditions.save()
}

test('the conditions of an earlier process decide as those that it compiled', () => {
  keep(CONDITIONS)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const kept = openKeptConditions(directory, ACCOUNT)
  keepConditionsIn(undefined)
  for (const source of CONDITIONS) {
    const [condition, compiled] = [kept.get(source), compileCondition(source)]
    assert.ok(condition && compiled.ok)
    for (const name of ['RM  -rf /', '9ü', 'k', 'kü']) {
      const facts = { tool: { name }, now: 0 }
      assert.deepEqual(evaluate(condition, facts), evaluate(compiled.condition, facts))
    }
  }
  assert.equal(kept.get('another'), undefined)
})

test('a process that checks nothing writes nothing, and conditions of earlier policies go with the next new one', () => {
  keep(CONDITIONS)
  const before = readFileSync(file)
  keep(CONDITIONS.slice(1))
  assert.deepEqual(readFileSync(file), before)
  keep(['tool.name == "new"', ...CONDITIONS.slice(1)])
  const kept = openKeptConditions(directory, ACCOUNT)
  assert.equal(kept.get(CONDITIONS[0] as string), undefined)
  for (const source of ['tool.name == "new"', ...CONDITIONS.slice(1)]) assert.ok(kept.get(source))
})

test('a file that another wrote, or that is not whole, is not used', () => {
  keep(CONDITIONS)
  const whole = readFileSync(file)
  const isUsed = (account = ACCOUNT, build?: string) =>
    openKeptConditions(directory, account, build).get('tool.name == "k"') !== undefined
  assert.ok(isUsed())
  assert.ok(!isUsed({ ...ACCOUNT, apiKey: 'another' }))
  assert.ok(!isUsed({ ...ACCOUNT, url: 'http://localhost:4681' }))
  assert.ok(!isUsed(ACCOUNT, 'another'), 'another build may check more')
  for (const at of [0, 31, 32, 40, whole.length - 1]) {
    const changed = Buffer.from(whole)
    changed[at] = (changed[at] as number) ^ 1
    writeFileSync(file, changed)
    assert.ok(!isUsed(), `byte ${at}`)
  }
  for (const length of [0, 31, 32, 36, whole.length - 4]) {
    writeFileSync(file, whole.subarray(0, length))
    assert.ok(!isUsed(), `${length} bytes`)
  }
  rmSync(file)
  keep(CONDITIONS)
  assert.deepEqual(readFileSync(file), whole)
})
