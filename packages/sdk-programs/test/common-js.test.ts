/** `require` in each Node that is found, also in one that cannot require ES modules. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { test } from 'node:test'
import { startPlace } from './place.ts'
import { outcomeOf, startService } from './service.ts'

const OLD = '--no-experimental-require-module'

const found = new Map<string, string>()
for (const folder of [
  path.dirname(process.execPath),
  ...(process.env['TACHO_TEST_RUNTIMES'] ?? '').split(path.delimiter),
  ...(process.env['PATH'] ?? '').split(path.delimiter),
]) {
  try {
    const version = execFileSync(path.join(folder, 'node'), ['--version'], { encoding: 'utf8', stdio: 'pipe' }).trim()
    if (!found.has(version)) found.set(version, path.join(folder, 'node'))
  } catch {
    // No Node there.
  }
}

for (const [version, node] of found) {
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
