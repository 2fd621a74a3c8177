/** Writes the shared vectors: `scripts/node packages/policy/vectors/write.ts`. */
import { writeFileSync } from 'node:fs'
import { decisionVectors } from './decisions.ts'
import { historyVectors } from './histories.ts'
import { conditionVectors, hashVectors, linesOf, sealedVectors } from './vectors.ts'

writeFileSync(new URL('conditions.jsonl', import.meta.url), linesOf(conditionVectors()))
writeFileSync(new URL('histories.jsonl', import.meta.url), linesOf(historyVectors()))
writeFileSync(new URL('input-hashes.jsonl', import.meta.url), linesOf(hashVectors()))
writeFileSync(new URL('sealed-inputs.jsonl', import.meta.url), linesOf(sealedVectors()))
writeFileSync(new URL('decisions.json', import.meta.url), `${JSON.stringify(decisionVectors(), null, 2)}\n`)
