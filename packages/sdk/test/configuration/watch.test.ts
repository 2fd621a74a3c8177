/** If the service offers `x-tacho-wait`, the client always has a request open that waits for the next configuration. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { json, startScriptedService, type Answer } from '@tacho/sdk-conformance/scripted-service.ts'
import { Tacho } from '../../src/index.ts'

const offered = (revision: string, wait = '25') => ({ etag: `W/"${revision}"`, 'x-tacho-wait': wait })
const serve = (revision: string, headers: Record<string, string> = offered(revision)): Answer =>
  json(200, { revision, prompts: [], policies: [] }, headers)

async function start(t: TestContext) {
  const service = await startScriptedService()
  t.after(service.close)
  let release: (answer: Answer) => void = () => undefined
  /** Holds a request until the test answers it. */
  const held: Answer = (response, request) => void (release = (answer) => answer(response, request))
  const open = () => {
    const tacho = new Tacho({ apiKey: 'k', baseUrl: service.url })
    t.after(() => tacho.shutdown(0))
    return tacho
  }
  return { service, open, held, answerHeld: (answer: Answer) => release(answer) }
}

test('a change arrives in the answer of the request that waits, which names the revision and begins again', async (t) => {
  const { service, open, held, answerHeld } = await start(t)
  service.script('runtime-config', serve('a'), held)
  const tacho = open()
  assert.equal(await tacho.configuration.ready(10_000), true)
  const [, waiting] = await service.until('runtime-config', 2)
  assert.deepEqual([waiting?.path, waiting?.headers['if-none-match']], ['/openapi/v1/runtime-config?wait=25', 'W/"a"'])
  const changed = new Promise((resolve) => tacho.configuration.onChange((current) => resolve(current.revision)))
  answerHeld(serve('b'))
  assert.equal(await changed, 'b')
  const [, , next] = await service.until('runtime-config', 3)
  assert.equal(next?.headers['if-none-match'], 'W/"b"')
})

test('a refresh by hand does not wait for the request that waits', async (t) => {
  const { service, open, held } = await start(t)
  service.script('runtime-config', serve('a'), held, serve('b'), held)
  const tacho = open()
  await tacho.configuration.ready(10_000)
  await service.until('runtime-config', 2)
  assert.equal(await tacho.configuration.refresh(), true)
  assert.equal(tacho.configuration.state.current?.revision, 'b')
  assert.equal(service.requests('runtime-config')[2]?.path, '/openapi/v1/runtime-config')
})

test('a wait whose connection is cut is followed soon by a request, and the next wait', async (t) => {
  const { service, open, held } = await start(t)
  const cut: Answer = (response) => void response.destroy()
  service.script('runtime-config', serve('a'), cut, serve('b'), held)
  const tacho = open()
  const said: string[] = []
  tacho.configuration.onChange(({ revision }) => void said.push(revision))
  await tacho.configuration.ready(10_000)
  const startedAt = performance.now()
  const asked = await service.until('runtime-config', 4)
  assert.ok(performance.now() - startedAt < 20_000)
  assert.deepEqual([asked.map(({ path }) => path.includes('wait=')), said.at(-1)], [[false, true, false, true], 'b'])
})

test('a service that does not offer it sees the requests of before, and one that answers early is not asked without end', async (t) => {
  const { service, open } = await start(t)
  service.script('runtime-config', serve('a', { etag: 'W/"a"' }))
  await open().configuration.ready(10_000)
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  assert.deepEqual(
    service.requests('runtime-config').map(({ path }) => path),
    ['/openapi/v1/runtime-config'],
  )
  const early = await start(t)
  early.service.script('runtime-config', serve('a'), json(304, '', offered('a')))
  const startedAt = performance.now()
  await early.open().configuration.ready(10_000)
  await early.service.until('runtime-config', 2)
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  // The client sends one more each second, and a busy machine may need several seconds here.
  const asked = early.service.requests('runtime-config').length
  assert.ok(asked <= 2 + (performance.now() - startedAt) / 1_000, `${asked} requests`)
})

test('a program whose work is over ends while the request waits, and its events arrive', async (t) => {
  const { service, held } = await start(t)
  service.script('runtime-config', serve('a'), held)
  const program = `
    import { Tacho } from ${JSON.stringify(fileURLToPath(new URL('../../src/index.ts', import.meta.url)))}
    const tacho = new Tacho({ apiKey: 'k', baseUrl: ${JSON.stringify(service.url)}, agentName: 'a' })
    await tacho.configuration.ready(10000)
    await tacho.run(async (run) => void run.step('late'))
    await new Promise((resolve) => setTimeout(resolve, 2000))
    await tacho.run(async (run) => void run.step('last'))`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'pipe'] })
  const [stderr] = await Promise.all([text(child.stderr), service.until('runtime-config', 2)])
  const closed = child.exitCode === null ? once(child, 'exit') : Promise.resolve([child.exitCode])
  const startedAt = performance.now()
  assert.deepEqual([(await closed)[0], stderr], [0, ''])
  assert.ok(performance.now() - startedAt < 15_000)
  const labels = service
    .requests('events')
    .flatMap(({ json: batch }) => (batch as { label: string }[]).map(({ label }) => label))
  assert.ok(labels.includes('last') && labels.includes('late'), labels.join())
})

/** A program with the SDK that prints each new revision. */
const programOf = (url: string, then: string) => `
    import { Socket } from 'node:net'
    import { Tacho } from ${JSON.stringify(fileURLToPath(new URL('../../src/index.ts', import.meta.url)))}
    const tacho = new Tacho({ apiKey: 'k', baseUrl: ${JSON.stringify(url)}, agentName: 'a' })
    await tacho.configuration.ready(10000)
    tacho.configuration.onChange(({ revision }) => console.log(revision))
    ${then}`

test('a program that goes on, although only outputs seem to be left, waits again', async (t) => {
  const { service, held } = await start(t)
  service.script('runtime-config', serve('a'), held)
  const program = programOf(service.url, 'new Socket({ fd: 3 }).resume()')
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
  })
  const exited = once(child, 'exit')
  t.after(() => child.kill())
  // On a busy machine, there may be more of them already.
  const asked = (await service.until('runtime-config', 4)).slice(0, 4)
  assert.deepEqual(
    asked.map(({ path }) => path.includes('wait=')),
    [false, true, true, true],
  )
  child.stdio[3]?.destroy()
  assert.equal((await exited)[0], 0)
})

for (const [reads, listens, stdio] of [
  ['its input, such as a server on stdio,', 'process.stdin.resume()', ['pipe', 'pipe', 'ignore']],
  ['messages of its parent', 'process.on("message", () => process.disconnect())', ['ignore', 'pipe', 'ignore', 'ipc']],
] as const) {
  test(`a program that reads ${reads} hears of a change at once`, async (t) => {
    const { service, held, answerHeld } = await start(t)
    service.script('runtime-config', serve('a'), held)
    const program = programOf(service.url, listens)
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: [...stdio] })
    const exited = once(child, 'exit')
    t.after(() => child.kill())
    await service.until('runtime-config', 2)
    // The client checks its process about ten times in this second.
    await wait(1_000)
    answerHeld(serve('b'))
    const [line] = (await once(child.stdout as Readable, 'data', { signal: AbortSignal.timeout(60_000) })) as [Buffer]
    assert.equal(line.toString(), 'b\n')
    assert.equal((await service.until('runtime-config', 3)).length, 3)
    if (child.connected) child.send('end')
    child.stdin?.end()
    assert.equal((await exited)[0], 0)
  })
}

test('a worker thread whose environment has the channel of a forked process can be asked what it reads', async () => {
  const part = fileURLToPath(new URL('../../src/configuration/host-input.ts', import.meta.url))
  const program = `import(${JSON.stringify(part)}).then(({ readsInput }) =>
    require('node:worker_threads').parentPort.postMessage(readsInput()))`
  const worker = new Worker(program, { eval: true, env: { NODE_CHANNEL_FD: '3' } })
  // Rejects if the worker throws, as `process.channel` does there.
  const [reads] = (await once(worker, 'message')) as [boolean]
  assert.equal(reads, false)
})
