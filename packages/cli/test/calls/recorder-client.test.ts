import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { text } from 'node:stream/consumers'
import type { EventInput } from '@tacho/contract/record/event.ts'
import { openRecorder, type Recorder } from '../../src/record/recorder-client.ts'

type Answer = (body: EventInput[], response: ServerResponse, request: IncomingMessage) => void

/** A server that gives scripted replies and keeps the requests. */
async function withServer(
  answers: Answer[],
  act: (recorder: Recorder, seen: string[][], waits: number[]) => Promise<void>,
): Promise<void> {
  const seen: string[][] = []
  const waits: number[] = []
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const events = JSON.parse(body) as EventInput[]
      seen.push(events.map(({ eventId }) => eventId))
      const answer = answers[Math.min(seen.length, answers.length) - 1]
      answer?.(events, response, request)
    })
  })
  await new Promise<void>((done) => void server.listen(0, '127.0.0.1', done))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const patience = { sleep: async (ms: number) => void waits.push(ms), random: () => 1 }
  try {
    await act(openRecorder(url, 'tacho_key', { patience }), seen, waits)
  } finally {
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
  }
}

function events(count: number): EventInput[] {
  return Array.from({ length: count }, (_, index) => ({
    eventId: `e${index}`,
    clientId: 'c',
    runId: 'r',
    agentName: 'a',
    eventType: 'AGENT_STEP',
    label: '',
    timestamp: 0,
  }))
}

const all: Answer = (body, response) => reply(response, { accepted: body.length })

function reply(response: ServerResponse, answer: object): void {
  const none = { success: true, accepted: 0, retryableEventIds: [], rejectedEventIds: [], rejections: [] }
  response.setHeader('content-type', 'application/json').end(JSON.stringify({ ...none, ...answer }))
}

function refuse(response: ServerResponse, status: number, code: string): void {
  const problem = { type: 'about:blank', title: code, status, code, requestId: 'req-1' }
  response.writeHead(status, { 'content-type': 'application/problem+json' }).end(JSON.stringify(problem))
}

test('events are sent in order, in batches, with the API key', async () => {
  const keys: unknown[] = []
  const answer: Answer = (body, response, request) => {
    keys.push(request.headers['x-api-key'])
    all(body, response, request)
  }
  await withServer([answer], async (recorder, seen) => {
    assert.deepEqual(await recorder.record(events(101)), { accepted: 101, refused: [], uncounted: [] })
    assert.deepEqual(
      seen.map((ids) => ids.length),
      [100, 1],
    )
    assert.deepEqual(keys, ['tacho_key', 'tacho_key'])
  })
})

test('only retryable events are resent, and rejected ones and lost counts are returned with their reason', async () => {
  const warning = { index: 0, eventId: 'e0', code: 'cost_not_counted', message: 'payload/cost must be a number' }
  const partial: Answer = (_body, response) =>
    reply(response, {
      success: false,
      accepted: 1,
      retryableEventIds: ['e1'],
      rejectedEventIds: ['e2'],
      rejections: [{ index: 2, eventId: 'e2', code: 'too_long', message: 'label is too long' }],
      warnings: [warning, { ...warning, code: 'payload_not_understood' }],
    })
  await withServer([partial, all], async (recorder, seen) => {
    const refused = [{ eventId: 'e2', code: 'too_long', message: 'label is too long' }]
    assert.deepEqual(await recorder.record(events(3)), { accepted: 2, refused, uncounted: [warning] })
    assert.deepEqual(seen, [['e0', 'e1', 'e2'], ['e1']])
  })
})

test('events that a reply neither counts nor names are resent', async () => {
  await withServer([(_body, response) => reply(response, { accepted: 1 }), all], async (recorder, seen) => {
    assert.deepEqual(await recorder.record(events(2)), { accepted: 2, refused: [], uncounted: [] })
    assert.deepEqual(seen, [
      ['e0', 'e1'],
      ['e0', 'e1'],
    ])
  })
})

test('429 and 503 are retried, never before Retry-After', async () => {
  const busy: Answer = (_body, response) => {
    response.setHeader('retry-after', '9')
    refuse(response, 429, 'rate_limited')
  }
  const away: Answer = (_body, response) => void response.writeHead(503).end('<html>')
  await withServer([busy, away, all], async (recorder, seen, waits) => {
    assert.equal((await recorder.record(events(1))).accepted, 1)
    assert.deepEqual(seen, [['e0'], ['e0'], ['e0']])
    assert.ok(waits[0] !== undefined && waits[0] >= 9_000)
    assert.equal(waits[1], 2_000)
  })
})

test('a lost connection is retried with the same ids', async () => {
  await withServer([(_body, response) => void response.destroy(), all], async (recorder, seen) => {
    assert.equal((await recorder.record(events(1))).accepted, 1)
    assert.deepEqual(seen, [['e0'], ['e0']])
  })
})

test('a permanent error fails at once, with its request id', async () => {
  await withServer([(_body, response) => refuse(response, 401, 'unauthenticated')], async (recorder, seen) => {
    await assert.rejects(recorder.record(events(1)), { exitCode: 1, message: /unauthenticated, request req-1/ })
    assert.equal(seen.length, 1)
  })
})

test('a reply from another server is an error', async () => {
  await withServer([(_body, response) => void response.end('<html>welcome</html>')], async (recorder) => {
    await assert.rejects(recorder.record(events(1)), { exitCode: 1, message: /is not a Tacho server/ })
  })
})

test('the client gives up after eight attempts', async () => {
  await withServer([(_body, response) => refuse(response, 503, 'overloaded')], async (recorder, seen) => {
    await assert.rejects(recorder.record(events(1)), { exitCode: 1, message: /overloaded/ })
    assert.equal(seen.length, 8)
  })
  const retry: Answer = (_body, response) => reply(response, { success: false, retryableEventIds: ['e0'] })
  await withServer([retry], async (recorder, seen) => {
    await assert.rejects(recorder.record(events(1)), { exitCode: 1, message: /after 8 attempts/ })
    assert.equal(seen.length, 8)
  })
})
