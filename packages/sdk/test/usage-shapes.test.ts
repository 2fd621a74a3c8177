import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

test('the SDK has the same table of usage as the service', () => {
  const [ours, theirs] = ['../src/recording/usage-shapes.ts', '../../contract/src/record/usage-shapes.ts'].map((file) =>
    readFileSync(new URL(file, import.meta.url), 'utf8'),
  )
  assert.equal(ours, theirs, 'cp packages/contract/src/record/usage-shapes.ts packages/sdk/src')
})
