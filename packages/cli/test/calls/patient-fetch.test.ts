import assert from 'node:assert/strict'
import { test } from 'node:test'
import { patientFetch } from '../../src/engine/patient-fetch.ts'

/** Answers with these statuses in turn, the last one forever. */
function answering(statuses: number[], headers: Record<string, string> = {}) {
  const sent: string[] = []
  const fetch = async (_: unknown, request?: RequestInit): Promise<Response> => {
    sent.push(request?.method ?? 'GET')
    return new Response('{}', { status: statuses[Math.min(sent.length, statuses.length) - 1] ?? 200, headers })
  }
  return { sent, call: patientFetch(fetch as typeof globalThis.fetch, () => 0) }
}

test('a read is repeated on 429 and 503, at most 4 times', async () => {
  const busy = answering([429, 503, 200])
  assert.equal((await busy.call('http://x')).status, 200)
  assert.equal(busy.sent.length, 3)
  const down = answering([503])
  assert.equal((await down.call('http://x')).status, 503)
  assert.equal(down.sent.length, 5)
})

test('a change and another error are sent once, and no caller waits longer than the bound', async () => {
  for (const [statuses, request, headers] of [
    [[429], { method: 'POST' }, {}],
    [[500], {}, {}],
    [[429], {}, { 'Retry-After': '21' }],
  ] as const) {
    const server = answering([...statuses], headers)
    assert.equal((await server.call('http://x', request)).status, statuses[0])
    assert.equal(server.sent.length, 1)
  }
})

test('a cancelled read stops waiting', async () => {
  const busy = answering([429], { 'Retry-After': '19' })
  const signal = AbortSignal.abort()
  await assert.rejects(busy.call('http://x', { signal }), { name: 'AbortError' })
})
