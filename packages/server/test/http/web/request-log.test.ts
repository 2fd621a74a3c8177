import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { readConfig } from '@tacho/server/config/config.ts'
import { newApiKey, newOperatorToken } from '@tacho/server/domain/people/credential.ts'
import { startServer } from '../../setup/start-server.ts'
import type { RunningServer } from '@tacho/server/process/server.ts'
import { event } from '../../setup/service.ts'
import { eventually } from '../../setup/eventually.ts'

const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-log-'))
const apiKey = newApiKey(randomBytes)
const token = newOperatorToken(randomBytes)
const lines: Record<string, unknown>[] = []
let server: RunningServer

before(async () => {
  const read = readConfig(
    { port: '0', dataDir: directory },
    { TACHO_INIT_API_KEY: apiKey.text, TACHO_INIT_OPERATOR_TOKEN: token.text },
  )
  assert.ok(read.ok)
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  server = await startServer(read.config, { log })
})
after(async () => {
  await server.close()
  rmSync(directory, { recursive: true })
})

/** The line of one request. */
async function logged(target: string, init: RequestInit = {}): Promise<Record<string, unknown>> {
  lines.length = 0
  const reply = await fetch(`${server.url}${target}`, init)
  await reply.text()
  // The line is written after the reply, so the client may be faster.
  await eventually(() => lines.length > 0, 'a log line')
  assert.equal(lines.length, 1)
  assert.equal(lines[0]?.['requestId'], reply.headers.get('x-request-id'))
  return lines[0] ?? {}
}

test('an answered request is one line: id, method, pattern, status, time, address and the public part of the key', async () => {
  const body = JSON.stringify([event({ runId: 'secret-run', label: 'secret-label', payload: { text: 'secret-text' } })])
  const headers = { 'x-api-key': apiKey.text, 'content-type': 'application/json' }
  const { method, route, status, keyId, ms, address } = await logged('/openapi/v1/events/batch', {
    method: 'POST',
    body,
    headers,
  })
  assert.deepEqual(
    { method, route, status, keyId, address },
    { method: 'POST', route: '/openapi/v1/events/batch', status: 200, keyId: apiKey.id, address: '127.0.0.1' },
  )
  assert.equal(typeof ms, 'number')
  assert.ok(!JSON.stringify(lines).includes('secret'))
})

test('ids, queries and credentials never reach the log, with any outcome', async () => {
  const bearer = { authorization: `Bearer ${token.text}` }
  await logged('/openapi/v1/runs/secret-run?cursor=secret', { headers: { 'x-api-key': apiKey.text } })
  assert.ok(!JSON.stringify(lines).includes('secret'))
  const line = await logged('/operator/v1/workspaces?cursor=secret', { headers: bearer })
  assert.equal(line['tokenId'], token.id)
  assert.ok(!JSON.stringify(lines).includes('secret'))
  await logged('/secret?secret', { headers: { 'x-api-key': 'secret', authorization: 'Bearer secret' } })
  assert.ok(!JSON.stringify(lines).includes('secret'))
  await logged('/openapi/v1/events/batch', { method: 'POST', body: '[secret', headers: { 'x-api-key': apiKey.text } })
  assert.ok(!JSON.stringify(lines).includes('secret'))
  assert.ok(!JSON.stringify(lines).includes(apiKey.text) && !JSON.stringify(lines).includes(token.text))
})

test('a request rejected before routing is one line too', async () => {
  const line = await logged('/openapi/v1/runs/secret%zz?secret', { headers: { 'x-api-key': apiKey.text } })
  assert.deepEqual([line['method'], line['route'], line['status']], ['GET', 'none', 400])
  assert.ok(!JSON.stringify(lines).includes('secret'))
})

test('health and metrics requests are logged at debug level only', async () => {
  assert.equal((await logged('/healthz'))['level'], 20)
  assert.equal((await logged('/readyz'))['level'], 20)
  assert.equal((await logged('/metrics'))['level'], 20)
})
