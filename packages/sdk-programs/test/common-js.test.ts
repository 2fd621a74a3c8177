/** `require` in each installed Node, including those that cannot require ES modules. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { installedNodes } from './blocks.ts'
import { startPlace } from './place.ts'
import { outcomeOf, startService } from './service.ts'

const OLD = '--no-experimental-require-module'

for (const [version, node] of installedNodes()) {
  for (const flags of [[], [OLD]]) {
    test(`CommonJS on Node ${version} ${flags.join(' ')}`, async (t) => {
      const service = await startService(t)
      service.block('refund')
      const place = await startPlace(t, 'common-js', [])
      const output = await place.run([node, ...flags, 'main.js'], service.env)
      const isOne = flags.length === 0
      assert.deepEqual(JSON.parse(output), { answer: 'policy', isOne, recordClient: 'function' })
      const events = service.events('common-js')
      assert.ok(events.some(({ label }) => label === 'BLOCK refund'))
      assert.equal(outcomeOf(events), 'COMPLETED')
    })
  }
}
