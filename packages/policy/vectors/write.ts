/**
 * `scripts/node packages/policy/vectors/write.ts` writes the shared vectors. With a number and a file it writes that many histories
 * there, for `TACHO_TEST_HISTORIES=<file>` of the tests in Python.
 */
import { writeFileSync } from 'node:fs'
import { decisionVectors } from './decisions.ts'
import { historyVectors } from './histories.ts'
import { conditionVectors, hashVectors, linesOf, sealedVectors } from './vectors.ts'

const [count, file] = process.argv.slice(2)
if (count !== undefined && file !== undefined) {
  writeFileSync(file, linesOf(historyVectors(Number(count))))
} else {
  writeFileSync(new URL('conditions.jsonl', import.meta.url), linesOf(conditionVectors()))
  writeFileSync(new URL('histories.jsonl', import.meta.url), linesOf(historyVectors()))
  writeFileSync(new URL('input-hashes.jsonl', import.meta.url), linesOf(hashVectors()))
  writeFileSync(new URL('sealed-inputs.jsonl', import.meta.url), linesOf(sealedVectors()))
  writeFileSync(new URL('decisions.json', import.meta.url), `${JSON.stringify(decisionVectors(), null, 2)}\n`)
}
