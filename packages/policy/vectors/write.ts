/** Writes the shared vectors: `scripts/node packages/policy/vectors/write.ts`. */
import { writeFileSync } from 'node:fs'
import { conditionVectors, hashVectors, linesOf } from './vectors.ts'

writeFileSync(new URL('conditions.jsonl', import.meta.url), linesOf(conditionVectors()))
writeFileSync(new URL('input-hashes.jsonl', import.meta.url), linesOf(hashVectors()))
