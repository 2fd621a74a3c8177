import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startAdapter } from '@tacho/sdk-conformance/adapter.ts'
import { RULES, runRule } from '@tacho/sdk-conformance/suite.ts'

const path = fileURLToPath(new URL('conformance-adapter.ts', import.meta.url))

// Rules run at the same time, because most of them wait for a timer.
describe('the SDK keeps the client rules', { concurrency: 8 }, () => {
  const adapter = startAdapter([process.execPath, path])
  after(() => adapter.stop())
  for (const rule of RULES) {
    test(`${rule.id}: ${rule.title}`, async () => {
      assert.deepEqual(await runRule(rule, adapter), { ok: true })
    })
  }
})
