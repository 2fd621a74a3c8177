/** An attacker who controls the service's answers cannot harm the host. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { test, type TestContext } from 'node:test'
import { Tacho, ToolBlockedError, type TachoOptions } from '../src/index.ts'
import { hostRuntime } from '../src/delivery/runtime.ts'
import { assertBalanced } from './balance.ts'

async function serve(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A client without backoffs. Diagnostics are collected. */
function client(t: TestContext, baseUrl: string, options: TachoOptions = {}) {
  const messages: string[] = []
  const onDiagnostic = ({ message }: { message: string }) => void messages.push(message)
  const runtime = { ...hostRuntime, random: () => 0 }
  const tacho = new Tacho({ apiKey: 'the-key', baseUrl, onDiagnostic, requestTimeoutMs: 300, ...options }, runtime)
  t.after(() => tacho.shutdown(0))
  return { tacho, messages }
}

const accepted = { success: true, accepted: 1, retryableEventIds: [], rejectedEventIds: [] }
const bomb = gzipSync(Buffer.alloc(200 * 1_048_576, 'x'))
const BODIES: Record<string, RequestListener> = {
  'a body without end': (_, response) => {
    const timer = setInterval(() => response.write('x'.repeat(100)), 5)
    response.on('close', () => clearInterval(timer))
  },
  'a gzip bomb': (_, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
  'a content-length that is too long': (_, response) =>
    void response.writeHead(200, { 'content-length': 5_000 }).write(JSON.stringify(accepted)),
  'a content-length that is too short': (_, response) =>
    void response.socket?.end(`HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n${JSON.stringify(accepted)}`),
  'a status without meaning': (_, response) => void response.writeHead(299).end('[]'),
  'deep nesting': (_, response) => void response.end('['.repeat(500_000)),
  'keys of the prototype': (_, response) =>
    void response.end(`{"__proto__":${JSON.stringify(accepted)},"accepted":{"valueOf":1}}`),
  'a header of all kinds': (_, response) =>
    void response.writeHead(503, { 'retry-after': `${'9'.repeat(4_000)}`, 'content-encoding': 'constructor' }).end(),
}

for (const [name, answer] of Object.entries(BODIES)) {
  test(`${name} keeps the event queued`, async (t) => {
    let isHostile = true
    const url = await serve(t, (request, response) => {
      request.resume()
      if (isHostile) answer(request, response)
      else response.end(JSON.stringify(accepted))
    })
    const { tacho } = client(t, url)
    tacho.startRun().step('step')
    assert.deepEqual(await tacho.flush(800), { sent: 0, rejected: 0, dropped: 0, left: 1 })
    assertBalanced(tacho)
    isHostile = false
    if (name === 'a header of all kinds') return
    assert.equal((await tacho.flush(30_000)).sent, 1)
  })
}

test('a redirect takes neither the key nor the events to another address', async (t) => {
  const stolen: unknown[] = []
  const elsewhere = await serve(t, (request, response) => {
    stolen.push(request.headers)
    response.end(JSON.stringify(accepted))
  })
  for (const code of [301, 302, 303, 307, 308]) {
    const url = await serve(t, (request, response) => {
      request.resume()
      response.writeHead(code, { location: elsewhere }).end()
    })
    const { tacho } = client(t, url)
    tacho.startRun().step('step')
    void tacho.configuration.ready(100)
    assert.equal((await tacho.flush(100)).left, 1)
  }
  assert.deepEqual(stolen, [])
})

test('a fetch that never answers, ignores its signal or throws anything does not block the client', async (t) => {
  for (const fetch of [
    () => new Promise<never>(() => undefined),
    () => Promise.reject(Object.create(null) as Error),
    () => Promise.resolve(null as never),
    () => {
      throw Symbol('thrown')
    },
  ]) {
    const { tacho } = client(t, 'http://tacho.test', { fetch, requestTimeoutMs: 20 })
    tacho.startRun().step('step')
    tacho.reportIssue({ detectionType: 'A' })
    assert.equal(await tacho.configuration.refresh(), false)
    assert.equal((await tacho.flush(100)).left, 1)
    assertBalanced(tacho)
  }
})

test('ids and codes of unknown events in an answer are ignored', async (t) => {
  const { tacho, messages } = client(t, 'http://tacho.test', {
    compression: 'never',
    fetch: (_, { body }) => {
      const [event] = JSON.parse(String(body)) as { eventId: string }[]
      const strangers = Array.from({ length: 5_000 }, (_each, n) => `stranger-${n}`)
      const codeOf = (n: number) => `code_${String.fromCharCode(97 + (n % 26))}_${'x'.repeat(n % 30)}`
      const rejections = strangers.map((eventId, n) => ({ eventId, code: codeOf(n) }))
      const rejectedEventIds = [...strangers, event?.eventId]
      return Promise.resolve(Response.json({ ...accepted, accepted: 0, rejectedEventIds, rejections }))
    },
  })
  tacho.startRun().step('step')
  assert.equal((await tacho.flush()).rejected, 1)
  assert.deepEqual(messages, ['The service rejected 1 events: rejected.'])
})

const POLICY = {
  policyId: 'p',
  name: 'P',
  version: '1',
  condition: 'true',
  severity: 'LOW',
  action: 'REQUIRE_APPROVAL',
}

async function guarded(t: TestContext, approval: object): Promise<{ error: unknown; paths: string[] }> {
  const paths: string[] = []
  const { tacho } = client(t, 'http://tacho.test', {
    compression: 'never',
    guard: { policies: [POLICY], whenUnconfigured: 'allow', configurationWaitMs: 0, approvalTimeoutMs: 1_000 },
    fetch: (url, { method }) => {
      if (!url.includes('firewall-approvals')) return Promise.reject(new Error('down'))
      paths.push(new URL(url).pathname)
      return Promise.resolve(Response.json(approval, { status: method === 'POST' ? 201 : 200 }))
    },
  })
  const tool = tacho.guard(() => 'ran', { name: 'tool' })
  const error = await tacho.run(() => tool()).catch((thrown: unknown) => thrown)
  return { error, paths }
}

test("an approval's id never names another path, and its reason is bounded", async (t) => {
  for (const id of ['..', '.', 'a/b', 'a?b', 'x'.repeat(256), '']) {
    const { error, paths } = await guarded(t, { id, status: 'PENDING' })
    assert.ok(error instanceof ToolBlockedError, id)
    assert.deepEqual([error.code, paths], ['approval_unavailable', ['/openapi/v1/firewall-approvals']], id)
  }
  const decisionReason = 'y'.repeat(900_000)
  const { error } = await guarded(t, { id: 'x'.repeat(255), status: 'REJECTED', decisionReason })
  assert.ok(error instanceof ToolBlockedError)
  assert.equal(error.code, 'approval_rejected')
  assert.ok(error.modelText.length < 2_200)
})

test('a configuration with more than 5,000 items is refused, and one with 5,000 is not', async (t) => {
  const answer = { revision: 'r', prompts: [], policies: Array<object>(5_001).fill(POLICY) }
  const { tacho, messages } = client(t, 'http://tacho.test', {
    fetch: () => Promise.resolve(Response.json(answer)),
    requestTimeoutMs: 30_000,
  })
  assert.equal(await tacho.configuration.refresh(), false)
  assert.match(messages.join(), /policies has more than 5000 items/)
  answer.policies.pop()
  assert.equal(await tacho.configuration.refresh(), true)
})

test('a cache file that is a pipe does not block the configuration', async (t) => {
  if (process.platform === 'win32') return t.skip('Windows has no named pipes in folders.')
  const folder = mkdtempSync(path.join(tmpdir(), 'tacho-pipe-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const cacheFile = path.join(folder, 'pipe')
  execFileSync('mkfifo', [cacheFile])
  const fetch = () => Promise.resolve(Response.json({ revision: 'r', prompts: [], policies: [] }))
  const { tacho } = client(t, 'http://tacho.test', { fetch, configuration: { cacheFile } })
  assert.equal(await tacho.configuration.ready(20_000), true)
})
