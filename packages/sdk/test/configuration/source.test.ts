import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { json, refuse, startScriptedService, type Answer } from '@tacho/sdk-conformance/scripted-service.ts'
import { Tacho, type TachoOptions } from '../../src/index.ts'
import { checkConfiguration } from '../../src/configuration/configuration.ts'
import { hostRuntime, type Runtime } from '../../src/delivery/runtime.ts'

function prompt(name: string, content: string) {
  const contentHash = createHash('sha256').update(content).digest('hex')
  return { promptId: 'p', name, versionId: `v-${content}`, version: '3', content, contentHash }
}

const serve = (revision: string, content: string): Answer =>
  json(200, { revision, prompts: [prompt('greeting', content)], policies: [] }, { etag: `W/"${revision}"` })

async function start(t: TestContext, ...answers: Answer[]) {
  const service = await startScriptedService()
  service.script('runtime-config', ...answers)
  t.after(service.close)
  const said: string[] = []
  const open = (options: TachoOptions = {}, runtime: Runtime = hostRuntime) => {
    const onDiagnostic = ({ code }: { code: string }) => void said.push(code)
    const tacho = new Tacho({ apiKey: 'k', baseUrl: service.url, onDiagnostic, ...options }, runtime)
    t.after(() => tacho.shutdown(0))
    return tacho
  }
  return { service, open, said }
}

/** The test controls the clock and the timers. */
function handRuntime() {
  let time = 1_000_000
  const timers = new Set<{ at: number; act: () => void }>()
  const runtime: Runtime = {
    ...hostRuntime,
    now: () => time,
    random: () => 0.5,
    timer(ms, act) {
      const timer = { at: time + ms, act }
      timers.add(timer)
      return { cancel: () => void timers.delete(timer) }
    },
  }
  return {
    runtime,
    delays: () => [...timers].map(({ at }) => at - time).sort((a, b) => a - b),
    pass(ms: number) {
      time += ms
      for (const timer of [...timers].filter(({ at }) => at <= time)) {
        timers.delete(timer)
        timer.act()
      }
    },
  }
}

test('a loaded configuration is frozen and complete; listeners receive it with the previous one', async (t) => {
  const { open } = await start(t, serve('r1', 'one'), json(304, undefined), serve('r2', 'two'))
  const tacho = open()
  const changes: unknown[] = []
  const end = tacho.configuration.onChange((now, before) => changes.push([now.revision, before?.revision]))
  await tacho.configuration.ready()
  const { current } = tacho.configuration.state
  assert.ok(Object.isFrozen(current) && Object.isFrozen(current?.prompts) && Object.isFrozen(current?.prompts[0]))
  await tacho.configuration.refresh()
  await tacho.configuration.refresh()
  assert.deepEqual(changes, [
    ['r1', undefined],
    ['r2', 'r1'],
  ])
  end()
  assert.equal(tacho.configuration.state.source, 'service')
})

test('a listener that throws has no effect on the configuration and is reported', async (t) => {
  const { open, said } = await start(t, serve('r1', 'one'))
  const tacho = open()
  tacho.configuration.onChange(() => {
    throw new Error('of the host')
  })
  assert.equal(await tacho.configuration.ready(), true)
  assert.ok(said.includes('listener_failed'))
})

test('the age counts from the last confirmation; the interval has a jitter of 20 %', async (t) => {
  const { open, service } = await start(t, serve('r1', 'one'), json(304, undefined))
  const clock = handRuntime()
  const tacho = open({ configuration: { refreshMs: 10_000 } }, clock.runtime)
  await tacho.configuration.refresh()
  assert.equal(tacho.configuration.state.ageMs, 0)
  // 0.8 + 0.4 * 0.5 of the interval.
  assert.ok(clock.delays().includes(10_000), clock.delays().join())
  clock.pass(9_999)
  assert.equal(tacho.configuration.state.ageMs, 9_999)
  assert.equal(service.requests('runtime-config').length, 1)
  clock.pass(1)
  await service.until('runtime-config', 2)
  while (tacho.configuration.state.ageMs !== 0) await new Promise(setImmediate)
})

test('while the service fails, refreshes follow the backoff and Retry-After', async (t) => {
  const { open } = await start(t, refuse(503, { 'retry-after': '120' }))
  const clock = handRuntime()
  const tacho = open({ configuration: { refreshMs: 10_000 } }, clock.runtime)
  assert.equal(await tacho.configuration.refresh(), false)
  assert.ok(
    clock.delays().some((delay) => delay >= 120_000 && delay <= 121_000),
    clock.delays().join(),
  )
  assert.deepEqual(tacho.configuration.state, { current: null, ageMs: null, source: null })
})

for (const status of [401, 403]) {
  test(`after ${status} there are no more refreshes, and the loaded configuration stays`, async (t) => {
    const { open, service, said } = await start(t, serve('r1', 'one'), refuse(status))
    const tacho = open()
    await tacho.configuration.refresh()
    assert.equal(await tacho.configuration.refresh(), false)
    assert.equal(await tacho.configuration.refresh(), false)
    assert.equal(service.requests('runtime-config').length, 2)
    assert.equal(tacho.configuration.state.current?.revision, 'r1')
    assert.ok(said.includes('configuration_refused'))
  })
}

test('304 is no configuration for a client that has none', async (t) => {
  const { open } = await start(t, json(304, undefined), serve('r1', 'one'))
  const tacho = open()
  assert.equal(await tacho.configuration.refresh(), false)
  assert.equal(await tacho.configuration.refresh(), true)
})

test('the cache file keeps the last valid configuration across restarts, only for the same key', async (t) => {
  const directory = mkdtempSync(path.join(tmpdir(), 'tacho-sdk-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const cacheFile = path.join(directory, 'configuration.json')
  const { open, service } = await start(t, serve('r1', 'one'))
  const first = open({ configuration: { cacheFile } })
  await first.configuration.ready()
  while (readdirSync(directory).join() !== 'configuration.json') await new Promise(setImmediate)
  assert.ok(!readFileSync(cacheFile, 'utf8').includes('"k"'))
  assert.equal(statSync(cacheFile).mode & 0o777, 0o600)

  service.script('runtime-config', refuse(503))
  const second = open({ configuration: { cacheFile } })
  assert.equal(await second.configuration.ready(), true)
  const { current, source } = second.configuration.state
  assert.deepEqual([current?.revision, source], ['r1', 'disk'])
  const other = open({ configuration: { cacheFile }, apiKey: 'other' })
  assert.equal(await other.configuration.ready(), false)

  // The client must ignore a changed file even if its tag is unchanged, because the service would confirm the tag.
  const kept = readFileSync(cacheFile, 'utf8')
  const { etag } = JSON.parse(kept) as { etag: string }
  for (const [before, after] of [
    ['"policies":[]', '"policies":[{}]'],
    ['"content":"one"', '"content":"two"'],
    ['"versionId":"v-one"', '"versionId":"v-two"'],
    [JSON.stringify(etag), JSON.stringify('W/"r2"')],
  ] as const) {
    const changed = kept.replace(before, after)
    assert.notEqual(changed, kept)
    writeFileSync(cacheFile, changed)
    assert.equal(await open({ configuration: { cacheFile } }).configuration.ready(), false)
    assert.equal(service.requests('runtime-config').at(-1)?.headers['if-none-match'], undefined)
  }
  writeFileSync(cacheFile, '{"signature":')
  assert.equal(await open({ configuration: { cacheFile } }).configuration.ready(), false)
})

test('the wait is for the service: the cache file is read however busy the machine is', async (t) => {
  const directory = mkdtempSync(path.join(tmpdir(), 'tacho-sdk-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const cacheFile = path.join(directory, 'configuration.json')
  const { open, service } = await start(t, serve('r1', 'one'))
  await open({ configuration: { cacheFile } }).configuration.ready()
  while (readdirSync(directory).join() !== 'configuration.json') await new Promise(setImmediate)
  service.script('runtime-config', refuse(503))
  const timer: Runtime['timer'] = (ms, act, hold) => {
    if (ms !== 7) return hostRuntime.timer(ms, act, hold)
    act()
    return { cancel: () => undefined }
  }
  const busy = open({ configuration: { cacheFile } }, { ...hostRuntime, timer })
  assert.equal(await busy.configuration.ready(7), true)
})

test('a cache file that cannot be written is reported and has no other effect', async (t) => {
  const { open, said } = await start(t, serve('r1', 'one'))
  const tacho = open({ configuration: { cacheFile: '/dev/null/nowhere' } })
  assert.equal(await tacho.configuration.ready(), true)
  while (!said.includes('configuration_not_kept')) await new Promise(setImmediate)
})

test('an invalid interval is replaced and reported', async (t) => {
  const { open, said } = await start(t, serve('r1', 'one'))
  for (const [refreshMs, isFaulty] of [
    [999, true],
    [1_000, false],
    [86_400_000, false],
    [86_400_001, true],
    ['5000' as unknown as number, true],
  ] as const) {
    said.length = 0
    await open({ configuration: { refreshMs } }).configuration.ready()
    assert.equal(said.includes('invalid_option'), isFaulty, String(refreshMs))
  }
})

test('a host that cannot check hashes gets no configuration and no rejected promise', async (t) => {
  const { open, said } = await start(t, serve('r1', 'one'))
  t.mock.method(crypto.subtle, 'digest', () => Promise.reject(new Error('not here')))
  assert.equal(await open().configuration.ready(), false)
  assert.ok(said.includes('configuration_unavailable'))
})

test('a failed load names the address, the reason and what is used instead', async (t) => {
  const { service, open } = await start(t, refuse(503))
  const messages: string[] = []
  await open({ onDiagnostic: ({ message }) => messages.push(message) }).configuration.ready()
  assert.deepEqual(messages, [
    `Could not load prompts and policies from ${service.url} (status 503); fallbacks are used.`,
  ])
})

test('a client that was counted says once that it ends; one that never asked says nothing', async (t) => {
  const { service, open } = await start(t, serve('r1', 'Hello'))
  const tacho = open()
  await open().shutdown()
  assert.equal(await tacho.configuration.ready(), true)
  await tacho.shutdown()
  await tacho.shutdown()
  const asked = service
    .requests('runtime-config')
    .map(({ headers }) => [headers['x-tacho-closing'], headers['if-none-match']])
  assert.deepEqual(asked, [
    [undefined, undefined],
    ['true', 'W/"r1"'],
  ])
})

/** The Python SDK reads the same file. */
const SHARES = new URL('../../../sdk-conformance/vectors/prompt-shares.json', import.meta.url)

test('a session gets the same version of a shared prompt in every process and SDK, a run without one by its own id', async (t) => {
  const vectors = JSON.parse(readFileSync(SHARES, 'utf8')) as { salt: string; session: string; percent: number }[]
  assert.ok(vectors.length > 15)
  const prompts = vectors.flatMap(({ salt, percent: first }, index) =>
    [first - 1, first].map((percent) => {
      const { promptId: _, name: __, ...other } = prompt('', 'other')
      return { ...prompt(`${index} ${percent}`, 'stable'), share: { percent, salt, ...other } }
    }),
  )
  const { open } = await start(t, json(200, { revision: 'r', prompts, policies: [] }, { etag: '"r"' }))
  const tacho = open()
  await tacho.configuration.ready()
  for (const [index, { session, percent: first }] of vectors.entries()) {
    const contents = () => [first - 1, first].map((percent) => tacho.prompt(`${index} ${percent}`, '').content)
    assert.deepEqual(contents(), ['stable', 'stable'], 'outside of runs')
    assert.deepEqual(await tacho.run({ sessionId: session }, contents), ['stable', 'other'], session)
    if (session.length <= 255)
      assert.deepEqual(await tacho.run({ runId: session }, contents), ['stable', 'other'], session)
  }
})

test('a prompt that did not change is not hashed again, and one with the hash of another text is refused', async (t) => {
  const digest = t.mock.method(crypto.subtle, 'digest')
  const served = (...prompts: object[]) => ({ revision: 'r', prompts, policies: [] })
  const first = await checkConfiguration(served(prompt('a', 'one'), prompt('b', 'two')))
  assert.ok(first.ok)
  assert.equal(digest.mock.callCount(), 2)
  const { configuration } = first
  assert.equal((await checkConfiguration(served(prompt('a', 'one'), prompt('b', 'new')), configuration)).ok, true)
  assert.equal(digest.mock.callCount(), 3)
  const forged = { ...prompt('b', 'two'), content: 'another' }
  assert.equal((await checkConfiguration(served(prompt('a', 'one'), forged), configuration)).ok, false)
})

test('a share of another form is left out, and a wrong hash in one rejects the configuration', async (t) => {
  const { promptId: _, name: __, ...other } = prompt('', 'other')
  const of = (revision: string, share: unknown) =>
    json(
      200,
      { revision, prompts: [{ ...prompt('greeting', 'stable'), share }], policies: [] },
      { etag: `"${revision}"` },
    )
  const share = { percent: 100, salt: 's', ...other }
  const { open } = await start(
    t,
    of('r1', { ...share, contentHash: 'ab'.repeat(32) }),
    ...['x', [], {}, { ...share, percent: '100' }, { ...share, salt: 1 }, null].map((form, at) =>
      of(`r${at + 2}`, form),
    ),
    of('last', share),
  )
  const tacho = open()
  const content = () => tacho.run({}, () => tacho.prompt('greeting', 'fallback').content)
  assert.equal(await tacho.configuration.refresh(), false)
  assert.equal(await content(), 'fallback')
  for (let at = 0; at < 6; at++) {
    assert.equal(await tacho.configuration.refresh(), true)
    assert.equal(await content(), 'stable')
  }
  assert.equal(await tacho.configuration.refresh(), true)
  assert.equal(await content(), 'other')
})
