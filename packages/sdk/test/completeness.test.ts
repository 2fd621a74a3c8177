/** The service reports which events of a run arrived, even if events are lost or processes die. Both are real. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { completenessText } from '@tacho/contract/record/completeness-text.ts'
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { API_KEY, startServer, type TestServer } from '../../cli/test/tacho.ts'
import { Tacho, type RunHandle, type TachoOptions } from '../src/index.ts'

const CHILD = fileURLToPath(new URL('completeness-child.ts', import.meta.url))

let server: TestServer
before(async () => {
  server = await startServer()
})
after(() => server.stop())

const client = (options: TachoOptions = {}) =>
  new Tacho({ apiKey: API_KEY, baseUrl: server.url, clientId: 'test', onDiagnostic: () => undefined, ...options })

async function said(runId: string): Promise<string> {
  const { run } = await server.json<{ run: OperatorRun }>('runs', 'show', runId)
  return completenessText(run.completeness, () => 'some time')
}

function child(part: string, options: object) {
  const args = [CHILD, part, server.url, API_KEY, JSON.stringify(options)]
  return spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
}

test('a run of which all arrived is complete; one that goes on is not known yet', async () => {
  const tacho = client()
  const run = tacho.startRun({ runId: 'whole' })
  for (let n = 0; n < 213; n++) run.step('step')
  await tacho.flush()
  assert.equal(await said('whole'), 'not known yet: 213 events arrived, and its client has not sent the last one')
  run.end()
  await tacho.shutdown()
  assert.equal(await said('whole'), 'complete: 214 of 214 events')
})

test('a client whose queue is full says so with what it still sends', async () => {
  let isDown = true
  const down: TachoOptions['fetch'] = async (url, options) => {
    if (isDown) throw new Error('down')
    return fetch(url, options as RequestInit)
  }
  const tacho = client({ maxQueuedEvents: 10, flushIntervalMs: 20, fetch: down })
  const run = tacho.startRun({ runId: 'full' })
  const beside = tacho.startRun({ runId: 'beside' })
  for (let n = 0; n < 12; n++) run.step('step')
  run.end()
  // The queue is full, so these events displace two more events of the run, after its outcome was recorded.
  beside.step('step')
  beside.end()
  isDown = false
  await tacho.shutdown(20_000)
  const lost = '5 of 13 events are missing: the client dropped them at some time because its queue was full'
  assert.equal(await said('full'), lost)
  assert.equal(await said('beside'), 'complete: 2 of 2 events')
  const shown = await server.text('runs', 'list', '--gaps')
  assert.match(shown, /full/)
  assert.match(shown, /\(5 missing\)/)
  assert.doesNotMatch(shown, /beside|whole/)
})

test('an event is counted once if its answer is lost', async () => {
  let calls = 0
  const lossy: TachoOptions['fetch'] = async (url, options) => {
    const reply = await fetch(url, options as RequestInit)
    if (calls++ < 2) throw new Error('the answer is lost')
    return reply
  }
  const tacho = client({ flushIntervalMs: 20, fetch: lossy })
  await tacho.run({ runId: 'lossy' }, (run) => void run.step('step'))
  await tacho.shutdown(20_000)
  assert.ok(calls >= 3)
  assert.equal(await said('lossy'), 'complete: 2 of 2 events')
})

test('rejected events and those that could not be recorded are named', async () => {
  const tacho = client()
  const run = tacho.startRun({ runId: 'rejected' })
  run.record({ type: 'STEP', label: 'too old', at: Date.now() - 40 * 86_400_000 })
  run.step('step')
  run.record({ type: 'STEP', label: { toString: () => assert.fail() } as never })
  run.end()
  await tacho.shutdown()
  const [missing, dropped] = [
    '2 of 4 events are missing',
    'the client dropped 1 at some time because it could not record them',
  ]
  assert.equal(await said('rejected'), `${missing}: ${dropped}, the service rejected 1`)
})

test('each process of a run counts for itself, and must say that it is done', async () => {
  const tacho = client()
  const run = tacho.startRun({ runId: 'shared' })
  run.step('begin')
  const handle: RunHandle = run.toHandle()
  await tacho.flush()
  const worker = child('works', { handle })
  await once(worker, 'close')
  assert.equal(
    await said('shared'),
    'not known yet: 7 events arrived, and 1 of its 2 clients has not sent the last one',
  )
  run.end()
  await tacho.shutdown()
  assert.equal(await said('shared'), 'complete: 8 of 8 events')
  const { run: shown } = await server.json<{ run: OperatorRun }>('runs', 'show', 'shared')
  assert.deepEqual(
    shown.completeness.recorders.map(({ clientId, arrived }) => [clientId, arrived]),
    [
      ['test', 2],
      ['child works', 6],
    ],
  )
})

test('a process that is killed never looks complete; with a spool, nothing is missing later', async () => {
  for (const spool of [undefined, path.join(server.directory, 'spool')]) {
    const runId = spool ? 'killed with spool' : 'killed'
    const dying = child('dies', { runId, spool, flushIntervalMs: 3_600_000 })
    await once(dying.stdout, 'data')
    dying.kill('SIGKILL')
    await once(dying, 'close')
    assert.equal(await said(runId), 'not known yet: 5 events arrived, and its client has not sent the last one')
    if (!spool) continue
    const next = client({ spool })
    await next.ready()
    await next.shutdown()
    assert.equal(await said(runId), 'not known yet: 8 events arrived, and its client has not sent the last one')
  }
})

test('events with ids of the host, sampled ones and metadata are no gaps', async () => {
  const tacho = client({ sampleRate: 0.000_001, capture: 'metadata-only' })
  const run = tacho.startRun({ runId: 'sampled' })
  run.step('not recorded')
  run.end()
  await tacho.shutdown()
  assert.equal(await said('sampled'), 'complete: 1 of 1 event')
  const named = client()
  const twice = named.startRun({ runId: 'named' })
  for (let n = 0; n < 2; n++) twice.record({ type: 'STEP', label: 'the same', eventId: 'my id' })
  twice.end()
  await named.shutdown()
  assert.equal(await said('named'), 'not known: 1 of 2 events have no number')
})

test('a number takes at most 16 bytes of an event', async () => {
  const bodies: string[] = []
  const seen: TachoOptions['fetch'] = async (url, options) => {
    bodies.push(String(options?.body))
    return fetch(url, options as RequestInit)
  }
  const tacho = client({ fetch: seen })
  const run = tacho.startRun({ runId: 'bytes' })
  for (let n = 0; n < 500; n++) run.step('step')
  run.end()
  await tacho.shutdown()
  const numbers = bodies.flatMap((body) => body.match(/,"n":"[^"]*"/g) ?? [])
  assert.equal(numbers.length, 501)
  assert.ok(Math.max(...numbers.map(({ length }) => length)) <= 16)
})
