import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { conditionVectors, hashVectors, linesOf } from '../vectors/vectors.ts'

const CHANGED = 'run scripts/node packages/policy/vectors/write.ts, and check that SDKs in other languages still agree'

for (const [name, vectors] of [
  ['conditions.jsonl', conditionVectors],
  ['input-hashes.jsonl', hashVectors],
] as const) {
  test(`the shared vectors in ${name} are what this package gives`, () => {
    const written = readFileSync(new URL(`../vectors/${name}`, import.meta.url), 'utf8').split('\n')
    const lines = linesOf(vectors()).split('\n')
    const first = lines.findIndex((line, index) => line !== written[index])
    assert.ok(first < 0 && written.length === lines.length, `line ${first + 1} differs: ${CHANGED}`)
    assert.ok(lines.length > 400)
  })
}
