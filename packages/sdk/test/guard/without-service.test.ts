/** The rows of "Without the service" in docs/sdk/guarding-tools.md. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import { Tacho, ToolBlockedError, type LocalPolicy } from '../../src/index.ts'
import { fakeTacho, type FakeOptions } from '../../src/testing/fake-tacho.ts'

function policy(action: string): LocalPolicy {
  const condition = `tool.name == "${action.toLowerCase()}"`
  return { policyId: action, name: action, version: '1', condition, severity: 'HIGH', action }
}

/** The results of one call of each tool. */
async function resultsOf({ tacho }: { readonly tacho: Tacho }, names: readonly string[], rules = {}) {
  const results: unknown[] = []
  for (const name of names) {
    const call = tacho.guardedCall({ name, input: {}, call: () => 'ran', approvalTimeoutMs: 1_000, ...rules })
    results.push(await call.catch((error: unknown) => (error instanceof ToolBlockedError ? error.code : error)))
  }
  return results
}

function cacheFile(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'tacho-cache-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return path.join(folder, 'configuration.json')
}

/** A client that starts while the service is down. */
function offline(t: TestContext, options: FakeOptions = {}) {
  const service = fakeTacho({ onDiagnostic: () => undefined, ...options })
  service.setDown(true)
  t.after(async () => {
    service.setDown(false)
    await service.close()
  })
  return service
}

/** Makes a client that reaches the service write the file. */
async function fill(file: string): Promise<void> {
  const service = fakeTacho({
    deployedPolicies: [policy('BLOCK'), policy('REQUIRE_APPROVAL')],
    configuration: { cacheFile: file },
  })
  assert.deepEqual(await resultsOf(service, ['other', 'block']), ['ran', 'policy'])
  // The client writes the file after the decision.
  while (!existsSync(file)) await setTimeout(5)
  await service.close()
}

test('at the start without a file, no tool runs, unless it may run unchecked', async (t) => {
  const service = offline(t)
  assert.deepEqual(await resultsOf(service, ['other'], { configurationWaitMs: 0 }), ['not_configured'])
  const open = { configurationWaitMs: 0, whenUnconfigured: 'allow' }
  assert.deepEqual(await resultsOf(service, ['other'], open), ['ran'])
})

test('at the start with a file, its policies decide; when the service answers again, newer ones do', async (t) => {
  const file = cacheFile(t)
  await fill(file)
  const service = offline(t, { configuration: { cacheFile: file, cacheMaxAgeMs: 3_600_000 } })
  assert.deepEqual(await resultsOf(service, ['other', 'block', 'require_approval']), [
    'ran',
    'policy',
    'approval_timeout',
  ])
  service.setDown(false)
  await service.deployPolicies([])
  assert.deepEqual(await resultsOf(service, ['other', 'block']), ['ran', 'ran'])
  service.setDown(true)
  assert.deepEqual(await resultsOf(service, ['other', 'block']), ['ran', 'ran'])
})

test('a file that is too old, or of another kind of age, counts as none', async (t) => {
  const file = cacheFile(t)
  await fill(file)
  for (const cacheMaxAgeMs of [-3_600_000, NaN]) {
    const service = offline(t, { configuration: { cacheFile: file, cacheMaxAgeMs } })
    // Wait, because the client reads the file in the background.
    assert.equal(await service.tacho.configuration.ready(), false)
    assert.deepEqual(await resultsOf(service, ['other'], { configurationWaitMs: 0 }), ['not_configured'])
  }
})

test("another key's file counts as none", async (t) => {
  const file = cacheFile(t)
  await fill(file)
  const fetch = () => Promise.reject(new TypeError('down'))
  for (const [apiKey, result] of [
    ['fake', 'ran'],
    ['other', 'not_configured'],
  ] as const) {
    const options = { apiKey, baseUrl: 'http://localhost', clientId: 'fake', fetch, onDiagnostic: () => undefined }
    const tacho = new Tacho({ ...options, configuration: { cacheFile: file }, flushTimeoutMs: 0 })
    await tacho.configuration.ready()
    assert.deepEqual(await resultsOf({ tacho }, ['other'], { configurationWaitMs: 0 }), [result])
    await tacho.shutdown()
  }
})
