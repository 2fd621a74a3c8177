import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { compileCondition, keepConditionsIn } from '../src/compile.ts'
import { fieldsOf } from '../src/language/fields.ts'
import { evaluate } from '../src/evaluate.ts'
import { conditionOf } from '../src/evaluation/condition.ts'
import { isKeepable, keptJson, programsOf, treeOf } from '../src/evaluation/kept-condition.ts'
import { parse } from '../src/language/parse.ts'
import type { Program } from '../src/pattern/program.ts'
import type { Node } from '../src/language/syntax.ts'
import type { Facts } from '../src/language/variables.ts'
import type { ConditionVector } from '../vectors/vectors.ts'

after(() => keepConditionsIn(undefined))

const vectors = readFileSync(new URL('../vectors/conditions.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as ConditionVector)

test('a condition that was kept as JSON decides as before, and what has a fault is never kept', () => {
  const added = new Map<string, { json: string; programs: ReadonlyMap<string, Program> }>()
  keepConditionsIn({
    get: () => undefined,
    add(source, root) {
      if (isKeepable(root)) added.set(source, { json: keptJson(root), programs: programsOf(root) })
    },
  })
  let count = 0
  for (const { source, facts, repeat, refused } of vectors) {
    const compiled = compileCondition(source)
    const isKept = compiled.ok && !/-0|e\+?[3-9]\d\d/.test(source)
    if (isKept || !compiled.ok) assert.equal(added.has(source), isKept, source)
    if (compiled.ok && !added.has(source)) continue
    if (!compiled.ok) {
      assert.ok(refused)
      continue
    }
    const { json, programs } = added.get(source) as { json: string; programs: ReadonlyMap<string, Program> }
    const again = conditionOf(source, treeOf(JSON.parse(json), programs))
    assert.deepEqual(fieldsOf(again), fieldsOf(compiled.condition))
    if (repeat !== undefined) continue
    const given: Facts = facts ?? { tool: { name: 'refund', input: {} }, now: 0 }
    assert.deepEqual(evaluate(again, given), evaluate(compiled.condition, given), source)
    count++
  }
  assert.ok(count > 1_000)
})

test('a number that JSON does not have is not kept', () => {
  const literal = (value: number): Node => ({ kind: 'literal', value, start: 0, end: 1 })
  assert.deepEqual(
    [1.5, 1e300, Infinity, -0].map((value) => isKeepable(literal(value))),
    [true, true, false, false],
  )
})

test('a tree whose pattern has no program is refused', () => {
  const tree = JSON.parse(keptJson(parse('tool.name.matches("^a")'))) as unknown
  assert.throws(() => treeOf(tree, new Map()), /a pattern is not kept/)
})

test('a condition of an earlier process is used without another check', () => {
  const kept = compileCondition('tool.name == "kept"')
  assert.ok(kept.ok)
  keepConditionsIn({ get: (source) => (source === 'anything' ? kept.condition : undefined), add: () => assert.fail() })
  assert.deepEqual(compileCondition('anything'), kept)
})
