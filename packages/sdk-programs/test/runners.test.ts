/** The SDK in Jest and Vitest, which replace modules, realms and timers. Needs TACHO_TEST_FRAMEWORKS=1. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { packagesOf, startPlace } from './place.ts'
import { outcomeOf, startService } from './service.ts'

const JEST = packagesOf(['jest@30.5.2'])
const VITEST = packagesOf(['vitest@5.1.1'])

test('Jest: CommonJS, fake timers, and errors of another realm', { skip: JEST.skip }, async (t) => {
  const service = await startService(t)
  service.block('refund')
  const place = await startPlace(t, 'jest', JEST.packages)
  await place.run(['jest', '--rootDir', place.folder], service.env)
  const events = service.events('jest')
  const read = events.find(({ label }) => label === 'read')
  assert.match(String(read?.payload['error']), /^Error: ENOENT/)
  assert.ok(events.some(({ label }) => label === 'BLOCK refund'))
  assert.equal(outcomeOf(events), 'FAILED')
})

test('Vitest: fake timers', { skip: VITEST.skip }, async (t) => {
  const service = await startService(t)
  service.block('refund')
  const place = await startPlace(t, 'vitest', VITEST.packages)
  await place.run(['vitest', 'run', '--root', place.folder], service.env)
  const events = service.events('vitest')
  assert.ok(events.some(({ label }) => label === 'BLOCK refund'))
  assert.equal(outcomeOf(events), 'FAILED')
})
