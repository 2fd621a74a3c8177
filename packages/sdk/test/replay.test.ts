/** A replay does not touch the files of real runs. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { Tacho } from '../src/index.ts'

test('a replay touches neither the events that wait on disk nor the policies that are kept there', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'tacho-replay-'))
  const files = { spool: path.join(folder, 'spool'), configuration: { cacheFile: path.join(folder, 'configuration') } }
  const asked: string[] = []
  const tape = createServer((request, response) => {
    asked.push(request.url ?? '')
    response.writeHead(503).end()
  }).listen(0, '127.0.0.1')
  try {
    // A real run with undelivered events.
    const real = new Tacho({ apiKey: 'key', baseUrl: 'http://127.0.0.1:9', ...files, onDiagnostic: () => undefined })
    real.startRun({ agentName: 'real' }).end('COMPLETED')
    await real.shutdown(0)
    const kept = () => readdirSync(files.spool).map((name) => readFileSync(path.join(files.spool, name), 'utf8'))
    const waiting = kept()
    assert.ok(waiting.length > 0)
    process.env['TACHO_REPLAY'] = `http://127.0.0.1:${(tape.address() as AddressInfo).port}`
    const replayed = new Tacho({ apiKey: 'key', ...files, onDiagnostic: () => undefined })
    replayed.startRun({ agentName: 'replayed' }).end('COMPLETED')
    await replayed.configuration.ready(500)
    await replayed.flush(500)
    assert.equal(replayed.counters().recorded, 1, 'only its own event')
    await replayed.shutdown(0)
    assert.ok(asked.length > 0)
    assert.equal(existsSync(files.configuration.cacheFile), false)
    assert.deepEqual(kept(), waiting)
  } finally {
    delete process.env['TACHO_REPLAY']
    tape.close()
    tape.closeAllConnections()
    rmSync(folder, { recursive: true, force: true })
  }
})

test('in a replay, decide() lets the host run nothing, because the tape cannot answer in its place', async () => {
  const tape = createServer((request, response) => {
    response.setHeader('content-type', 'application/json')
    if (request.url?.endsWith('/replay/tool-calls')) response.end('{"answer":"returned","output":"Paid."}')
    else response.writeHead(503).end()
  }).listen(0, '127.0.0.1')
  await once(tape, 'listening')
  try {
    process.env['TACHO_REPLAY'] = `http://127.0.0.1:${(tape.address() as AddressInfo).port}`
    const tacho = new Tacho({ apiKey: 'key', guard: { whenUnconfigured: 'allow' }, onDiagnostic: () => undefined })
    assert.equal((await tacho.decide({ toolName: 'pay', input: { amount: 1 } })).action, 'BLOCK')
    await tacho.shutdown(0)
  } finally {
    delete process.env['TACHO_REPLAY']
    tape.close()
    tape.closeAllConnections()
  }
})
