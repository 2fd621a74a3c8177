/** Exports that end before their last line, and a server on a store that is damaged. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import path from 'node:path'
import { finished } from 'node:stream/promises'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { pino } from 'pino'
import { readConfig } from '../../../src/config/config.ts'
import { startServer } from '../../setup/start-server.ts'
import { eventually } from '../../setup/eventually.ts'
import { event, startService, type Service } from '../../setup/service.ts'

const BROKE_OFF = 'an export broke off: its file is not whole'
const LEFT = 'an export was left by its client: its file is not whole'

/** Serves the store of a stopped service, with the messages that it logs. */
async function serveLogged({ directory }: Service) {
  const read = readConfig({ port: '0', dataDir: directory, logLevel: 'warn' }, {})
  assert.ok(read.ok)
  const logged: string[] = []
  const write = (line: string) => void logged.push((JSON.parse(line) as { msg: string }).msg)
  const server = await startServer(read.config, { log: pino({ level: 'warn' }, { write }) })
  return { server, logged }
}

async function openExport(url: string, { environmentId, operatorToken }: Service): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${operatorToken}` }
  const sent = request(`${url}/operator/v1/environments/${environmentId}/export`, { headers }).end()
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return answer
}

test('an export that its client leaves is logged', async () => {
  const service = await startService()
  try {
    const payload = { text: 'x'.repeat(200_000) }
    for (let sent = 0; sent < 20; sent++) await service.record(Array.from({ length: 5 }, () => event({ payload })))
    await service.stop()
    const { server, logged } = await serveLogged(service)
    const answer = await openExport(server.url, service)
    answer.destroy()
    await eventually(() => logged.includes(LEFT), 'the log line')
    await server.close()
    assert.ok(!logged.includes(BROKE_OFF))
  } finally {
    await service.close()
  }
})

test('an export that the store breaks off is logged, and has no last line', async () => {
  const service = await startService()
  try {
    const payload = { text: 'x'.repeat(100_000) }
    await service.record(Array.from({ length: 5 }, () => event({ payload })))
    await service.stop()
    // An export reads this table after the runs, so it has already sent its first lines.
    damage('issues', path.join(service.directory, 'tacho.db'))
    const { server, logged } = await serveLogged(service)
    try {
      const answer = await openExport(server.url, service)
      assert.equal(answer.statusCode, 200)
      let text = ''
      answer.on('data', (piece: Buffer) => (text += piece.toString()))
      await assert.rejects(finished(answer))
      assert.match(text, /^\{"type":"export"/)
      assert.doesNotMatch(text, /"type":"end"/)
      await eventually(() => logged.includes(BROKE_OFF), 'the log line')
    } finally {
      await server.close()
    }
  } finally {
    await service.close()
  }
})

test('on a damaged store readiness ends with a log line, and events may be sent again', async () => {
  const service = await startService()
  try {
    await service.record([event({ runId: 'run' })])
    await service.stop()
    damage('events', path.join(service.directory, 'tacho.db'))
    const { server, logged } = await serveLogged(service)
    try {
      // The export may end before or after its first line, depending on the order of its reads.
      const answer = await openExport(server.url, service)
      answer.on('error', () => undefined).resume()
      const isNoticed = () => logged.includes('the store is damaged: events are refused')
      await eventually(isNoticed, 'the log line')
      const ready = await fetch(`${server.url}/readyz`)
      assert.equal(ready.status, 503)
      assert.match(((await ready.json()) as { detail: string }).detail, /^The store is damaged: .*Restore a backup$/)
      const batch = [event({ eventId: 'again', runId: 'other' })]
      const headers = { 'x-api-key': service.apiKey, 'content-type': 'application/json' }
      const sent = { method: 'POST', headers, body: JSON.stringify(batch) }
      const recorded = await fetch(`${server.url}/openapi/v1/events/batch`, sent)
      assert.deepEqual(((await recorded.json()) as { retryableEventIds: string[] }).retryableEventIds, ['again'])
    } finally {
      await server.close()
    }
  } finally {
    await service.close()
  }
})

/** Overwrites the first page of a table. */
function damage(table: string, file: string): void {
  const db = new Database(file)
  const page = db.prepare<[string], number>('SELECT rootpage FROM sqlite_schema WHERE name = ?').pluck().get(table) ?? 0
  const size = db.pragma('page_size', { simple: true }) as number
  db.close()
  const bytes = readFileSync(file)
  bytes.fill(0xff, (page - 1) * size, page * size)
  writeFileSync(file, bytes)
}
