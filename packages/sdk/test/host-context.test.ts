/** Background work of the SDK runs outside the host's requests, and nothing in the host stops it. */
import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import { startScriptedService } from '@tacho/sdk-conformance/scripted-service.ts'
import { Tacho, type TachoOptions } from '../src/index.ts'
import { hostRuntime, type Fetch } from '../src/delivery/runtime.ts'

async function start(t: TestContext) {
  const service = await startScriptedService()
  t.after(service.close)
  const sent: { path: string; init: Parameters<Fetch>[1]; request: unknown }[] = []
  const current = new AsyncLocalStorage<string>()
  const watched: Fetch = (url, init) => {
    sent.push({ path: new URL(url).pathname, init, request: current.getStore() })
    return hostRuntime.fetch(url, init)
  }
  const open = (options: TachoOptions = {}) =>
    new Tacho({ apiKey: 'k', baseUrl: service.url, fetch: watched, onDiagnostic: () => undefined, ...options })
  return { service, sent, current, open }
}

/** Uses everything that sends: events, the configuration, an approval, an issue record. */
async function useAll(tacho: Tacho): Promise<void> {
  await tacho.configuration.ready(5_000)
  const rule = { condition: 'true', severity: 'HIGH', action: 'REQUIRE_APPROVAL' } as const
  const policies = [{ policyId: 'ask', name: 'ask', version: '1', ...rule }]
  const tool = tacho.guard(() => 'ran', { name: 'tool', policies, approvalTimeoutMs: 1_000 })
  await tacho.run(() => tool().catch(() => undefined))
  tacho.reportIssue({ detectionType: 'LATE' })
  await tacho.flush(5_000)
}

test('no answer comes from a cache of the host', async (t) => {
  const { sent, open } = await start(t)
  const tacho = open()
  await useAll(tacho)
  await tacho.shutdown(5_000)
  const paths = new Set(sent.map(({ path }) => path.replace('/openapi/v1/', '').split('/')[0]))
  assert.deepEqual(paths, new Set(['events', 'firewall-approvals', 'issue-records', 'runtime-config']))
  for (const { path, init } of sent) assert.equal(init.cache, 'no-store', path)
})

test("requests, timers and clocks are not in the context of the host's request", async (t) => {
  const { sent, current, open } = await start(t)
  const tacho = open({ flushIntervalMs: 20 })
  await current.run('a request', async () => {
    await useAll(tacho)
    tacho.startRun().step('sent by a timer')
    await sleep(200)
    const seen: unknown[] = []
    const note = () => void seen.push(current.getStore())
    await new Promise<void>((resolve) => hostRuntime.timer(1, () => resolve(note())))
    await new Promise<void>((resolve) => hostRuntime.soon(() => resolve(note())))
    assert.deepEqual(seen, [undefined, undefined])
    // The host's own code stays in its request.
    assert.equal(await tacho.run(() => current.getStore()), 'a request')
  })
  await tacho.shutdown(5_000)
  assert.ok(sent.length > 4)
  for (const { path, request } of sent) assert.equal(request, undefined, path)
})

test('fake timers of a test stop neither deliveries nor deadlines', async (t) => {
  const { service, open } = await start(t)
  t.mock.timers.enable()
  const tacho = open({ flushIntervalMs: 10 })
  tacho.startRun().step('recorded')
  assert.deepEqual(await tacho.shutdown(10_000), { sent: 1, rejected: 0, dropped: 0, left: 0 })
  // Nothing answers, so only the deadline ends it.
  await service.close()
  const silent = open({ fetch: () => new Promise<never>(() => undefined) })
  silent.startRun().step('left')
  assert.equal((await silent.shutdown(50)).left, 1)
})

test('timers that are fake before the import, as those of a whole Jest project, are not used', async () => {
  const child = `
    globalThis.setTimeout = () => ({ unref() {} })
    globalThis.clearTimeout = () => undefined
    await import(${JSON.stringify(new URL('../src/index.ts', import.meta.url).href)})
    const { hostRuntime } = await import(${JSON.stringify(new URL('../src/delivery/runtime.ts', import.meta.url).href)})
    hostRuntime.timer(1, () => console.log('called'), true)`
  assert.equal(execFileSync(process.execPath, ['--input-type=module', '-e', child]).toString(), 'called\n')
})

test('a setImmediate that throws, as in an edge runtime, is not used', async () => {
  const child = `
    globalThis.setImmediate = () => { throw new Error('not here') }
    const { hostRuntime } = await import(${JSON.stringify(new URL('../src/delivery/runtime.ts', import.meta.url).href)})
    hostRuntime.soon(() => console.log('called'))`
  assert.equal(execFileSync(process.execPath, ['--input-type=module', '-e', child]).toString(), 'called\n')
})

/** Runs `code` in a separate process. `code` can import `module` as `url`. */
const outputOf = (module: string, code: string) =>
  execFileSync(process.execPath, ['--input-type=module', '-e', code], {
    env: { ...process.env, MODULE: new URL(`../src/${module}`, import.meta.url).href },
    stdio: ['ignore', 'pipe', 'pipe'],
  }).toString()

test('what an edge runtime refuses reaches neither the import nor the client', () => {
  const output = outputOf(
    'index.ts',
    `import { AsyncLocalStorage } from 'node:async_hooks'
    const refuse = () => { throw new Error('not here') }
    AsyncLocalStorage.snapshot = refuse
    crypto.getRandomValues = refuse
    const { Tacho } = await import(process.env.MODULE)
    const tacho = new Tacho({ apiKey: 'key', fetch: refuse, flushTimeoutMs: 0, onDiagnostic: () => {} })
    console.log(await tacho.withRun((run) => run.runId.length))
    process.exit()`,
  )
  assert.equal(output, '36\n')
})

test('twenty open clients are one warning', () => {
  const output = outputOf(
    'index.ts',
    `const { Tacho } = await import(process.env.MODULE)
    const open = (said = ({ code }) => console.log(code)) => new Tacho({ apiKey: 'key', onDiagnostic: said })
    for (let client = 0; client < 18; client++) open()
    await open().shutdown()
    open()
    console.log('the twentieth')
    for (let client = 0; client < 5; client++) open()`,
  )
  assert.equal(output, 'the twentieth\nclients_open\n')
})
