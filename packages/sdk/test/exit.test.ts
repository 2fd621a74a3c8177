/** The promises of docs/sdk/delivery.md for each way a process can end, with real processes. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test, type TestContext } from 'node:test'
import { Tacho, type TachoOptions } from '../src/index.ts'
import { hostRuntime } from '../src/delivery/runtime.ts'
import { ended } from '../../cli/test/tacho.ts'
import { eventually } from '../../server/test/setup/eventually.ts'
import { assertBalanced } from './balance.ts'
import { accept, startScriptedServer, status, type Answer, type ScriptedServer } from './scripted-server.ts'

const CHILD = fileURLToPath(new URL('exit-child.ts', import.meta.url))

interface End {
  code: number | null
  signal: NodeJS.Signals | null
  output: string
  errors: string
}

/** `copy`: the entry of a second copy of the SDK, which the child uses as well. */
type ChildOptions = TachoOptions & { events?: number; copy?: string }

/** Runs the child to its end. Calls `onReady` when the child is ready. */
async function endOf(
  way: string,
  url: string,
  options: ChildOptions = {},
  onReady: (kill: (signal: NodeJS.Signals) => void) => void = () => undefined,
  onOutput: (output: string) => void = () => undefined,
  flags: readonly string[] = [],
): Promise<End> {
  // Long, for slow machines.
  const given = { flushTimeoutMs: 60_000, ...options }
  const child = spawn(process.execPath, [...flags, CHILD, way, url, JSON.stringify(given)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  child.stdout.on('data', (chunk: Buffer) => {
    const wasReady = output.includes('ready')
    output += chunk.toString()
    if (!wasReady && output.includes('ready')) onReady((signal) => child.kill(signal))
    onOutput(output)
  })
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  return { code, signal, output, errors }
}

async function serve(t: TestContext, ...answers: Answer[]) {
  const server = await startScriptedServer(...answers)
  t.after(server.close)
  const labels = () => [...new Set(server.events().map(({ label }) => label))]
  return { ...server, labels }
}

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'tacho-spool-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

test('a process that ends normally delivers everything first', async (t) => {
  const server = await serve(t)
  assert.equal((await endOf('normal', server.url, { events: 250 })).code, 0)
  assert.equal(server.labels().length, 250)
})

test('timers of the client do not keep a process running, and events recorded late are delivered too', async (t) => {
  const server = await serve(t)
  const { code } = await endOf('return-later', server.url, { flushIntervalMs: 3_600_000 })
  assert.equal(code, 0)
  assert.ok(server.labels().includes('late'))
})

test('if the service is down, a process that ends normally waits at most flushTimeoutMs', async (t) => {
  const server = await serve(t, status(503))
  const begun = Date.now()
  assert.equal((await endOf('normal', server.url, { flushTimeoutMs: 300 })).code, 0)
  // The flush timeout ends the process. The backoff alone would last forever.
  assert.ok(Date.now() - begun < 30_000)
})

test('a process that ends normally reports how many events were not delivered, the address, and whether they are kept', async (t) => {
  const server = await serve(t, status(503))
  const options = { events: 2, flushTimeoutMs: 300, flushIntervalMs: 0 }
  const lost = await endOf('reports', server.url, options)
  const sentence = `Not delivered to ${server.url}: 2 events.`
  assert.ok(lost.errors.includes(`${sentence} They are lost.`), lost.errors)
  const kept = await endOf('reports', server.url, { ...options, spool: temporaryFolder(t) })
  assert.ok(kept.errors.includes(`${sentence} The spool keeps them.`), kept.errors)
  server.script()
  assert.equal((await endOf('reports', server.url)).errors, '')
})

test('a failing delivery names the address and the cause', async (t) => {
  const server = await serve(t, status(503))
  const message = await new Promise<string>((resolve) => {
    const onDiagnostic = (diagnostic: { message: string }) => resolve(diagnostic.message)
    const tacho = new Tacho({ apiKey: 'key', baseUrl: server.url, flushIntervalMs: 0, onDiagnostic })
    t.after(() => tacho.shutdown(0))
    tacho.startRun().step('step')
  })
  assert.equal(message, `Events stay queued because ${server.url} does not accept them: status 503.`)
})

test('shutdown delivers and accounts for everything', async (t) => {
  const server = await serve(t)
  const { output, code } = await endOf('shutdown', server.url, { events: 120 })
  assert.equal(code, 0)
  assert.deepEqual(JSON.parse(output), { sent: 120, rejected: 0, dropped: 0, left: 0 })
})

for (const [way, code] of [
  ['throw', 1],
  ['exit', 7],
] as const) {
  test(`after ${way}, the spool keeps what a failing service did not accept`, async (t) => {
    const server = await serve(t, status(503))
    const spool = temporaryFolder(t)
    const options = { spool, flushIntervalMs: 3_600_000, flushTimeoutMs: 300 }
    assert.equal((await endOf(way, server.url, options)).code, code)
    server.script()
    // 10 events and the outcome.
    await recover(server.url, spool, 11)
  })
}

test('SIGTERM with flushOnSignals: false ends the process as without the SDK', async (t) => {
  const server = await serve(t)
  const options = { events: 1, flushOnSignals: false, flushIntervalMs: 3_600_000 }
  const end = await endOf('wait-with-more', server.url, options, (kill) => kill('SIGTERM'))
  assert.equal(end.signal, 'SIGTERM')
  assert.deepEqual(server.labels(), ['step 0'])
})

test('SIGTERM delivers, and the process still ends by the signal', async (t) => {
  const server = await serve(t)
  const options = { flushIntervalMs: 3_600_000 }
  const end = await endOf('wait', server.url, options, (kill) => kill('SIGTERM'))
  assert.equal(end.signal, 'SIGTERM')
  assert.equal(server.labels().length, 11)
  assert.equal(server.labels().at(-1), 'cancelled')
})

test('SIGTERM ends a process with two copies of the SDK, as bundles can have, once both have delivered', async (t) => {
  const held = Promise.withResolvers<void>()
  let tries = 0
  // The service accepts the last events of the second copy only after the first copy has finished.
  const server = await serve(t, (response, batch) => {
    const [last] = batch.events.flatMap(({ label, runId }) => (label === 'cancelled' ? [runId] : []))
    // Wait until the SDK would count a further signal as a second one, not as a copy from the process group or the parent.
    if (last === 'exit') return void setTimeout(() => accept(response, batch), 1_100)
    if (last !== 'second' || ++tries > 1) return accept(response, batch)
    void held.promise.then(() => status(503, { 'retry-after': '0' })(response, batch))
  })
  const folder = temporaryFolder(t)
  for (const name of ['src', 'package.json']) {
    cpSync(fileURLToPath(new URL(`../${name}`, import.meta.url)), path.join(folder, name), { recursive: true })
  }
  const options = { flushIntervalMs: 3_600_000, flushTimeoutMs: 60_000, copy: path.join(folder, 'src/index.ts') }
  const onOutput = (output: string) => output.includes('one copy left') && held.resolve()
  const end = await endOf('wait', server.url, options, (kill) => kill('SIGTERM'), onOutput)
  assert.equal(end.signal, 'SIGTERM', end.errors)
  const cancelled = server.events().flatMap(({ label, runId }) => (label === 'cancelled' ? [runId] : []))
  assert.deepEqual([cancelled.toSorted(), tries], [['exit', 'second', 'second'], 2])
})

test("the SDK does not interrupt the host's own drain on SIGTERM (langwatch#6826)", async (t) => {
  const server = await serve(t)
  const options = { flushIntervalMs: 3_600_000 }
  const end = await endOf('host-drains', server.url, options, (kill) => kill('SIGTERM'))
  assert.equal(end.code, 3)
  assert.match(end.output, /drained/)
  assert.equal(server.labels().length, 11)
  assert.equal(server.labels().at(-1), 'cancelled')
})

test('the SDK does not end a host that drains with process.once', async (t) => {
  const server = await serve(t)
  const options = { flushIntervalMs: 3_600_000 }
  const end = await endOf('host-drains-once', server.url, options, (kill) => kill('SIGTERM'))
  assert.deepEqual([end.code, end.signal], [3, null])
  assert.match(end.output, /drained/)
})

test('shutdown(500) lets the process end, although a request would wait for ten minutes', async (t) => {
  const server = await serve(t, () => undefined)
  const options = { events: 1, requestTimeoutMs: 600_000, flushIntervalMs: 0 }
  const { output, code } = await endOf('shutdown-500', server.url, options)
  assert.equal(code, 0)
  assert.deepEqual(JSON.parse(output), { sent: 0, rejected: 0, dropped: 0, left: 1 })
})

test('with a spool, kill -9 loses no event, and every event keeps its id', async (t) => {
  // The service never answers, so some events are in a request when the process dies.
  const server = await serve(t, () => undefined)
  const spool = temporaryFolder(t)
  const end = await endOf('wait', server.url, { spool, events: 350, flushIntervalMs: 0 }, (kill) => kill('SIGKILL'))
  assert.equal(end.signal, 'SIGKILL')
  const before = new Set(server.events().map(({ eventId }) => eventId))
  server.script()
  const tacho = await recover(server.url, spool, 350)
  assert.equal(server.labels().length, 350)
  const ids = new Set(server.events().map(({ eventId }) => eventId))
  assert.equal(ids.size, 350)
  assert.ok([...before].every((id) => ids.has(id)))
  assert.equal(tacho.counters().recovered, 350)
})

test('an incomplete last line is reported; all other events are delivered', async (t) => {
  const server = await serve(t, status(503))
  const spool = temporaryFolder(t)
  await endOf('exit', server.url, { spool, flushIntervalMs: 3_600_000, flushTimeoutMs: 300 })
  server.script()
  const [file = ''] = readdirSync(spool)
  const { appendFileSync } = await import('node:fs')
  appendFileSync(path.join(spool, file), '{"eventId":"torn","eventTy')
  const codes: string[] = []
  const tacho = new Tacho({ apiKey: 'key', baseUrl: server.url, spool, onDiagnostic: ({ code }) => codes.push(code) })
  await tacho.ready()
  await tacho.shutdown(60_000)
  assert.equal(tacho.counters().accepted, 11)
  assert.ok(codes.includes('spool_damaged'))
})

test('a spool is empty after delivery, and a live process keeps its own segments', async (t) => {
  const server = await serve(t, status(503))
  const spool = temporaryFolder(t)
  const options = { apiKey: 'key', baseUrl: server.url, spool, onDiagnostic: () => undefined }
  const first = new Tacho(options)
  await first.ready()
  first.startRun({ runId: 'r' }).step('kept')
  const second = new Tacho(options)
  await second.ready()
  assert.equal(second.counters().recovered, 0)
  server.script()
  assert.equal((await first.flush(30_000)).sent, 1)
  await Promise.all([first.shutdown(), second.shutdown()])
  assert.equal(readdirSync(spool).length, 1)
  await recover(server.url, spool, 0)
})

test('what a closed client left in the spool is taken by the next client of the same process, and by no second one', async (t) => {
  const server = await serve(t, status(503))
  const spool = temporaryFolder(t)
  const options = { apiKey: 'key', baseUrl: server.url, spool, onDiagnostic: () => undefined }
  const closed = new Tacho(options)
  closed.startRun({ runId: 'r' }).step('left')
  assert.equal((await closed.shutdown(0)).left, 1)
  const next = new Tacho(options)
  await next.ready()
  assert.equal(next.counters().recovered, 1)
  // Another process must deliver them, because this one skips its own files.
  const child = await endOf('normal', server.url, { spool, events: 0, flushTimeoutMs: 300 })
  assert.equal(child.code, 0)
  const ours = readdirSync(spool).filter((name) => name.split('.')[1] === String(process.pid))
  assert.ok(ours.some((name) => statSync(path.join(spool, name)).size > 0))
  server.script()
  await next.shutdown(30_000)
  assert.equal(next.counters().accepted, 1)
})

test('a spool reads only plain files, and sends a repeated event once', async (t) => {
  const server = await serve(t)
  const [spool, elsewhere] = [temporaryFolder(t), temporaryFolder(t)]
  const orphan = (name: string) => path.join(spool, `elsewhere.1.1.${name}.events`)
  const line = (eventId: string) => `${JSON.stringify({ eventId, eventType: 'X', label: 'l' })}\n`
  writeFileSync(path.join(elsewhere, 'secret'), line('linked'))
  symlinkSync(path.join(elsewhere, 'secret'), orphan('link'))
  mkdirSync(orphan('folder'))
  writeFileSync(orphan('twice'), line('same') + line('same'))
  const old = new Date(Date.now() - 3_600_000)
  for (const name of ['folder', 'twice']) utimesSync(orphan(name), old, old)
  const codes: string[] = []
  const tacho = new Tacho({ apiKey: 'key', baseUrl: server.url, spool, onDiagnostic: ({ code }) => codes.push(code) })
  await tacho.ready()
  await tacho.shutdown(60_000)
  assert.equal(tacho.counters().accepted, 1)
  assert.deepEqual(codes, [])
  assert.deepEqual(readdirSync(spool).sort(), ['elsewhere.1.1.folder.events', 'elsewhere.1.1.link.events'])
})

test('a spool ignores files that are too large or belong to another user', async (t) => {
  const server = await serve(t)
  const spool = temporaryFolder(t)
  const line = (eventId: string) => `${JSON.stringify({ eventId, eventType: 'X', label: eventId })}\n`
  const plant = (name: string, text: string, time = new Date(0)) => {
    const file = path.join(spool, `elsewhere.1.1.${name}.events`)
    writeFileSync(file, text)
    utimesSync(file, time, time)
    return file
  }
  plant('a-large', 'x'.repeat(2 * 1_048_576 + 1))
  plant('b-pid', line('pid'))
  const isRoot = process.getuid?.() === 0
  if (isRoot) chownSync(plant('c-foreign', line('foreign')), 1, 1)
  const codes: string[] = []
  const tacho = new Tacho({ apiKey: 'key', baseUrl: server.url, spool, onDiagnostic: ({ code }) => codes.push(code) })
  await tacho.ready()
  tacho.startRun().step('recorded')
  await tacho.shutdown(60_000)
  assert.equal(tacho.counters().accepted, 2)
  assert.deepEqual(server.labels(), ['pid', 'recorded'])
  assert.deepEqual(codes, ['spool_skipped'])
  const left = readdirSync(spool).filter((file) => file.startsWith('elsewhere'))
  assert.equal(left.length, isRoot ? 2 : 1)
})

test('a spool leaves every file alone that no SDK wrote, whatever its ending', async (t) => {
  const server = await serve(t)
  const spool = temporaryFolder(t)
  const names = [
    'calendar.events',
    'github.issues',
    'a.b.c.d.events',
    '.1.events',
    'host.1.1.events',
    'host.1.1.an id.events',
  ]
  for (const name of names) {
    writeFileSync(path.join(spool, name), '{"eventId":"e","eventType":"X","label":"l"}\n')
    utimesSync(path.join(spool, name), new Date(0), new Date(0))
  }
  const tacho = new Tacho({ apiKey: 'key', baseUrl: server.url, spool, onDiagnostic: () => undefined })
  await tacho.ready()
  await tacho.shutdown(60_000)
  assert.equal(tacho.counters().recovered, 0)
  assert.deepEqual(readdirSync(spool).sort(), names.sort())
})

test('many tiny lines do not block the host at the start, and fill at most half of the queue', async (t) => {
  const server = await serve(t, status(503))
  const spool = temporaryFolder(t)
  const file = path.join(spool, 'elsewhere.1.1.tiny.events')
  const lines = Array.from({ length: 30_000 }, (_, n) => (n % 2 === 0 ? 'x' : `{"eventId":"${n}","eventType":"X"}`))
  writeFileSync(file, lines.join('\n'))
  utimesSync(file, new Date(0), new Date(0))
  const { soon } = hostRuntime
  let turns = 0
  const runtime = { ...hostRuntime, soon: (act: () => void) => (turns++, soon(act)) }
  const options = { apiKey: 'key', baseUrl: server.url, spool, maxQueuedEvents: 10_000, onDiagnostic: () => undefined }
  const tacho = new Tacho(options, runtime)
  await tacho.ready()
  const { queued, recovered, dropped } = tacho.counters()
  assert.deepEqual([queued, recovered, dropped], [5_000, 5_000, {}])
  // The host's code runs at least every 100 lines.
  assert.ok(turns >= 100, String(turns))
  await tacho.shutdown(0)
  // The next process delivers the remaining events.
  const next = new Tacho({ ...options, maxQueuedEvents: 40_000 })
  await next.ready()
  assert.equal(next.counters().recovered, 15_000)
  await next.shutdown(0)
})

test('a disk that is full in the middle of a line is reported, and memory delivers everything', async (t) => {
  const server = await serve(t)
  const spool = temporaryFolder(t)
  // A limit on the file size cuts a line in the middle, as a full disk does.
  const script = 'ulimit -f 40 && exec "$@"'
  const options = JSON.stringify({ spool, events: 150, flushTimeoutMs: 60_000 })
  const child = spawn('sh', ['-c', script, 'sh', process.execPath, CHILD, 'reports', server.url, options])
  const { code, stderr } = await ended(child)
  assert.equal(code, 0)
  assert.match(stderr, /^tacho: The spool cannot be used \(EFBIG\): what is recorded is only in memory\.\n$/)
  assert.equal(server.labels().length, 150)
  // Complete lines survive, and the next process sends them again with the same ids.
  const codes: string[] = []
  const tacho = new Tacho({ apiKey: 'key', baseUrl: server.url, spool, onDiagnostic: (said) => codes.push(said.code) })
  await tacho.ready()
  await tacho.shutdown(60_000)
  const { accepted } = tacho.counters()
  assert.ok(accepted > 20 && accepted < 150, String(accepted))
  assert.deepEqual(codes, ['spool_damaged'])
  assert.equal(new Set(server.events().map(({ eventId }) => eventId)).size, 150)
})

test('a spool that cannot be written is reported, and recording continues', async (t) => {
  const server = await serve(t)
  const codes: string[] = []
  const spool = `${CHILD}/not-a-folder`
  const tacho = new Tacho({ apiKey: 'key', baseUrl: server.url, spool, onDiagnostic: ({ code }) => codes.push(code) })
  await tacho.ready()
  tacho.startRun().step('recorded')
  await tacho.shutdown(60_000)
  assert.equal(tacho.counters().accepted, 1)
  assert.deepEqual(codes, ['spool_failed'])
  assert.deepEqual(saidOf(server), ['failed'])
})

const saidOf = ({ batches }: ScriptedServer) => batches.map(({ headers }) => headers['x-tacho-spool'])

test('the first delivery after a full queue says that the spool was full, and no later one', async (t) => {
  const server = await serve(t)
  server.script(status(503))
  const spool = mkdtempSync(path.join(tmpdir(), 'tacho-full-'))
  t.after(() => rmSync(spool, { recursive: true }))
  const tacho = new Tacho({
    apiKey: 'key',
    baseUrl: server.url,
    spool,
    maxQueuedEvents: 10,
    onDiagnostic: () => undefined,
  })
  t.after(() => tacho.shutdown(0))
  await tacho.ready()
  const run = tacho.startRun()
  for (let step = 0; step < 20; step++) run.step(String(step))
  await eventually(() => server.batches.length > 0 || null, 'a refused delivery')
  server.script(accept)
  server.batches.length = 0
  assert.equal((await tacho.flush(60_000)).left, 0)
  run.step('later')
  assert.equal((await tacho.flush(60_000)).left, 0)
  const [first, ...later] = saidOf(server)
  assert.equal(first, 'full')
  assert.ok(later.length > 0 && later.every((said) => said === undefined))
})

/** The next process on the same spool. */
async function recover(baseUrl: string, spool: string, expected: number): Promise<Tacho> {
  const tacho = new Tacho({ apiKey: 'key', baseUrl, spool, onDiagnostic: () => undefined })
  await tacho.ready()
  const { rejected, dropped, left } = await tacho.shutdown(30_000)
  assert.deepEqual({ rejected, dropped, left }, { rejected: 0, dropped: 0, left: 0 })
  // Do not use the result of `shutdown`: it counts only what it delivered itself, and a full batch may be sent earlier.
  assert.equal(tacho.counters().accepted, expected)
  assertBalanced(tacho)
  return tacho
}

test('a service that accepts and never answers holds a process whose work is over for the time of a flush', async (t) => {
  const server = createServer((socket) => socket.on('error', () => undefined).resume()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  for (const way of ['reports', 'wait-for-flush']) {
    const begun = performance.now()
    const { code, errors } = await endOf(way, url, { flushTimeoutMs: 500, requestTimeoutMs: 600_000 })
    assert.equal(code, 0)
    assert.match(errors, /^events_undelivered|\nevents_undelivered|Not delivered to .*: 1\d events\. They are lost\./)
    // A request alone may take ten minutes.
    assert.ok(performance.now() - begun < 60_000, way)
  }
})

test('with --permission, a process that ends at once says that its events are lost, and what to allow', async (t) => {
  const server = await serve(t)
  const flags = ['--permission', '--allow-fs-read=*', '--allow-net']
  const { code, errors } = await endOf('exit-reports', server.url, {}, undefined, undefined, flags)
  assert.equal(code, 7)
  assert.match(errors, /Not delivered to .*They are lost\. With --permission, .* --allow-child-process\./)
})
