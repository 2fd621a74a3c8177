import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createOperatorClient } from '../src/operator.ts'
import { readRefusal, retryAfterMs } from '../src/read-reply.ts'
import { startHttpServer } from './http-server.ts'
import { collectGarbage } from '../../server/test/setup/heap-growth.ts'

const NOW = Date.UTC(2026, 10, 20)

test('Retry-After is seconds or a date, and bounded', () => {
  assert.equal(retryAfterMs('7', NOW), 7_000)
  assert.equal(retryAfterMs('Fri, 20 Nov 2026 00:00:09 GMT', NOW), 9_000)
  assert.equal(retryAfterMs('Fri, 20 Nov 2020 00:00:09 GMT', NOW), 0)
  assert.equal(retryAfterMs('999999999999', NOW), 300_000)
  assert.equal(retryAfterMs('soon', NOW), null)
  assert.equal(retryAfterMs(null, NOW), null)
})

test('408, 429 and 5xx can be retried, other refusals cannot', async () => {
  const body = JSON.stringify({ code: 'x', title: 't', requestId: 'q' })
  for (const [statuses, expected] of [
    [[408, 429, 500, 502, 503, 599], true],
    [[400, 401, 403, 404, 409, 413], false],
  ] as const) {
    for (const status of statuses) {
      for (const text of [body, '<html>']) {
        const { temporary } = await readRefusal(new Response(text, { status }), 1000)
        assert.equal(temporary, expected, `${status} ${text}`)
      }
    }
  }
})

test('a streamed reply that is read later is whole, whatever is collected meanwhile', async (t) => {
  const server = await startHttpServer(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).write('first ')
    setTimeout(() => response.end('last'), 200)
  })
  const client = createOperatorClient({ url: server.url, token: 'token' })
  const params = { environmentId: '0199c1d4-0000-7000-8000-000000000001', runId: 'run' }
  const body = await client.exportRun({ params }).then((reply) => (reply.ok ? reply.value : null))
  assert.ok(body)
  for (let turn = 0; turn < 5; turn++) {
    collectGarbage()
    await sleep(10)
  }
  assert.equal(await new Response(body).text(), 'first last')
})
