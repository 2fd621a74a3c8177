import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkSeqs, type Side } from '../../../src/storage/copy/side.ts'
import { StoreRefused } from '../../../src/storage/engine/store.ts'

const LARGEST = 2_147_483_647

test('a database takes events numbered up to 2,147,483,647, and no further; a file takes all', () => {
  const [database, file] = [{ engine: 'postgres', place: 'there' } as Side, { engine: 'sqlite' } as Side]
  assert.doesNotThrow(() => checkSeqs([{ seq: 1 }, { seq: LARGEST }], database))
  assert.throws(
    () => checkSeqs([{ seq: 1 }, { seq: LARGEST + 1 }], database),
    (error) => error instanceof StoreRefused && /which there cannot hold/.test(error.message),
  )
  assert.doesNotThrow(() => checkSeqs([{ seq: LARGEST + 1 }], file))
})
