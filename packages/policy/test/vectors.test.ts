import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { decisionVectors } from '../vectors/decisions.ts'
import { historyVectors } from '../vectors/histories.ts'
import { conditionVectors, hashVectors, linesOf, sealedVectors } from '../vectors/vectors.ts'

const CHANGED = 'run scripts/node packages/policy/vectors/write.ts, and check that SDKs in other languages still agree'

for (const [name, vectors, least] of [
  ['conditions.jsonl', conditionVectors, 400],
  ['histories.jsonl', historyVectors, 100],
  ['input-hashes.jsonl', hashVectors, 400],
  ['sealed-inputs.jsonl', sealedVectors, 10],
] as const) {
  test(`the shared vectors in ${name} are what this package gives`, () => {
    const written = readFileSync(new URL(`../vectors/${name}`, import.meta.url), 'utf8').split('\n')
    const lines = linesOf(vectors()).split('\n')
    const first = lines.findIndex((line, index) => line !== written[index])
    assert.ok(first < 0 && written.length === lines.length, `line ${first + 1} differs: ${CHANGED}`)
    assert.ok(lines.length > least)
  })
}

test('among the shared histories are values of each origin, and each condition both holds and does not', () => {
  const vectors = historyVectors()
  const origins = new Set(vectors.flatMap(({ origins: found }) => found.flatMap(({ origin }) => origin)))
  assert.deepEqual([...origins].toSorted(), ['Zürich', 'ours', 'private', 'unknown', 'unlabelled', 'untrusted', 'user'])
  const results = new Set(
    vectors.flatMap(({ conditions }) => conditions.map(({ source, matched }) => `${matched} ${source}`)),
  )
  for (const { source } of vectors[0]?.conditions ?? []) {
    assert.ok(results.has(`true ${source}`) && results.has(`false ${source}`), source)
  }
})

test('the shared decisions are what this package gives, and each action and policy is among them', () => {
  const written = JSON.parse(readFileSync(new URL('../vectors/decisions.json', import.meta.url), 'utf8')) as unknown
  const vectors = decisionVectors()
  assert.deepEqual(written, vectors, CHANGED)
  const { policies, calls } = vectors
  assert.deepEqual([policies.length, calls.length], [23, 200])
  assert.equal(new Set(calls.map(({ action }) => action)).size, 4)
  const matched = new Set(calls.flatMap(({ policyIds }) => policyIds))
  // The eighteenth policy blocks all other agents, so it must never match these calls.
  assert.deepEqual(
    policies.map(({ policyId }) => policyId).filter((id) => !matched.has(id)),
    ['rule-18'],
  )
})
