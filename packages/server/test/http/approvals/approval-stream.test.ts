import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect, type AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { ApprovalChanges, ApprovalSnapshot, StreamEnd } from '@tacho/contract/approvals/operator-approval.ts'
import type { CreatedOperatorToken } from '@tacho/contract/people/token.ts'
import type { ApprovalFeed, Follower } from '@tacho/server/http/approvals/approval-feed.ts'
import type { Deps } from '@tacho/server/http/web/deps.ts'
import { approvalStreamRoutes, type StreamOptions } from '@tacho/server/http/approvals/approval-stream.ts'
import { withoutBodyParsers } from '@tacho/server/http/web/serve-route.ts'
import type { ApprovalRow } from '@tacho/server/storage/approvals/approvals.ts'
import { fastify, type FastifyRequest } from 'fastify'
import type { TSchema } from 'typebox'
import { Check } from 'typebox/value'
import { approvalCalls, type ApprovalCalls } from '../../setup/approval-service.ts'
import { openEventStream, type EventStream } from '../../setup/event-stream.ts'
import { startService, type Service } from '../../setup/service.ts'
import { refusalOf, UNKNOWN_ID } from '../web/contract.ts'
import { eventually } from '../../setup/eventually.ts'

let service: Service
let calls: ApprovalCalls
before(async () => {
  service = await startService()
  calls = approvalCalls(service)
})
after(() => service.close())

const path = (of = service.environmentId) => `/environments/${of}/approvals/stream`

function open(of: Service = service, token = of.operatorToken, environmentId = of.environmentId): Promise<EventStream> {
  return openEventStream(`${of.url}/operator/v1${path(environmentId)}`, { authorization: `Bearer ${token}` })
}

/** The next event, which must have that name and the shape of the contract. */
async function expectEvent<Data>(stream: EventStream, name: string, schema: TSchema): Promise<Data> {
  const found = await stream.next()
  assert.equal(found?.event, name)
  assert.ok(Check(schema, found.data), JSON.stringify(found.data))
  return found.data as Data
}

const snapshotOf = (stream: EventStream) => expectEvent<ApprovalSnapshot>(stream, 'snapshot', ApprovalSnapshot)

/** Reads hints until one shows the approval in that state. */
async function untilTold(stream: EventStream, id: string, status: string): Promise<void> {
  for (;;) {
    const { items } = await expectEvent<ApprovalChanges>(stream, 'changed', ApprovalChanges)
    if (items.some((item) => item.id === id && item.status === status)) return
  }
}

async function workspaceId(): Promise<string> {
  const { body } = await service.operator<{ items: { id: string }[] }>('/workspaces')
  return body.items[0]?.id ?? ''
}

test('the stream begins with the pending approvals, then shows new, decided and expired ones', async () => {
  const first = (await calls.ask({ timeoutMs: 600_000 })).body.id
  const stream = await open()
  assert.equal(stream.status, 200)
  assert.equal(stream.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  assert.equal(stream.headers.get('cache-control'), 'no-store')
  const { items, more } = await snapshotOf(stream)
  assert.ok(items.some(({ id }) => id === first))
  assert.equal(more, false)
  // Long enough to be seen before it expires.
  const second = (await calls.ask({ timeoutMs: 10_000 })).body.id
  await untilTold(stream, second, 'PENDING')
  await calls.decide(first, 'APPROVED')
  await untilTold(stream, first, 'APPROVED')
  // Nobody reads this request, so only the background job expires it.
  await untilTold(stream, second, 'EXPIRED')
  stream.close()
  await calls.untilFollowers(0)
})

test('a snapshot holds at most a hundred approvals, those with the oldest deadlines', async () => {
  const { environmentId } = await service.newTenant(`many ${randomUUID()}`)
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  const ask = async (timeoutMs: number) => (await calls.ask({ timeoutMs }, { 'x-api-key': key })).body.id
  const urgent = await ask(60_000)
  for (let n = 0; n < 100; n++) await ask(600_000)
  const stream = await open(service, service.operatorToken, environmentId)
  const { items, more } = await snapshotOf(stream)
  assert.deepEqual([items.length, items[0]?.id, more], [100, urgent, true])
  stream.close()
})

test('a stream shows only its own environment', async () => {
  const { environmentId } = await service.newTenant(`elsewhere ${randomUUID()}`)
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  const stream = await open(service, service.operatorToken, environmentId)
  assert.deepEqual((await snapshotOf(stream)).items, [])
  await calls.ask()
  const { id } = (await calls.ask({}, { 'x-api-key': key })).body
  const { items } = await expectEvent<ApprovalChanges>(stream, 'changed', ApprovalChanges)
  assert.deepEqual(items, [{ id, status: 'PENDING' }])
  stream.close()
})

test('heartbeats arrive while nothing happens, and the stream ends when its token is revoked', async () => {
  const workspace = await workspaceId()
  const made = await service.operator<CreatedOperatorToken>(`/workspaces/${workspace}/tokens`, {
    body: { name: 'watcher', role: 'viewer' },
  })
  const stream = await open(service, made.body.token)
  await snapshotOf(stream)
  const ended = stream.next()
  // No reads in between, so the next event is the end.
  await eventually(() => stream.comments() >= 1, 'a heartbeat')
  await service.operator(`/workspaces/${workspace}/tokens/${made.body.id}/revoke`, { method: 'POST' })
  const last = await ended
  assert.deepEqual(last, { event: 'end', data: { reason: 'access_ended' } })
  assert.ok(Check(StreamEnd, last.data))
  assert.equal(await stream.next(), null)
})

test('at drain the stream ends with that reason, and the server stops', async () => {
  const draining = await startService()
  const stream = await open(draining)
  await snapshotOf(stream)
  const closed = draining.close()
  assert.deepEqual(await stream.next(), { event: 'end', data: { reason: 'shutting_down' } })
  assert.equal(await stream.next(), null)
  await closed
})

/** A server with only streams, and a feed that the test controls. */
async function streamsAlone(readPending: () => Promise<ApprovalRow[]>, options: StreamOptions = {}) {
  const logged: string[] = []
  const app = fastify({ logger: { level: 'warn', stream: { write: (line: string) => void logged.push(line) } } })
  withoutBodyParsers(app)
  app.decorateRequest('operator', null)
  app.addHook('onRequest', async (request) => {
    request.operator = { environment: { id: UNKNOWN_ID } } as FastifyRequest['operator']
  })
  const followers = new Set<Follower>()
  const feed: ApprovalFeed = {
    async follow(_environmentId, follower) {
      followers.add(follower)
      return () => followers.delete(follower)
    },
    look: () => undefined,
    close: () => undefined,
    size: () => followers.size,
  }
  const deps = { draining: () => false, now: Date.now } as Deps
  const read = async () => ({ rows: await readPending(), more: false })
  approvalStreamRoutes(app, deps, { feed, current: { find: async () => null, read } }, options)
  await app.listen({ port: 0, host: '127.0.0.1' })
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(`GET ${path(UNKNOWN_ID)} HTTP/1.1\r\nHost: x\r\n\r\n`)
  await eventually(() => followers.size > 0, 'a follower')
  return { app, socket, followers, logged }
}

test('a client that does not read is disconnected', async () => {
  const { app, socket, followers, logged } = await streamsAlone(async () => [])
  // The buffers of both operating systems fill first, then the server's.
  const rows = Array.from({ length: 200 }, () => ({ id: randomUUID(), status: 'PENDING' }) as ApprovalRow)
  while (followers.size > 0) {
    for (const follower of followers) follower.changed(rows)
    await wait(0)
  }
  socket.destroy()
  await app.close()
  assert.deepEqual(logged, [])
})

test('a disconnected client leaves nothing behind, and is not an error', async () => {
  const { app, socket, followers, logged } = await streamsAlone(async () => [])
  socket.resume()
  await once(socket, 'data')
  socket.destroy()
  await eventually(() => followers.size === 0, 'the followers to leave')
  await app.close()
  assert.deepEqual(logged, [])
})

test('a client that disconnects before the snapshot is read leaves nothing behind', async () => {
  const pending = Promise.withResolvers<ApprovalRow[]>()
  const { app, socket, followers, logged } = await streamsAlone(() => pending.promise)
  const connections = promisify(app.server.getConnections.bind(app.server))
  socket.destroy()
  await eventually(async () => (await connections()) === 0, 'the connection to close')
  pending.resolve([])
  await eventually(() => followers.size === 0, 'the followers to leave')
  await app.close()
  assert.deepEqual(logged, [])
})

test('streams beyond the process limit are rejected until one ends', async () => {
  const { app, socket, followers } = await streamsAlone(async () => [], { mostStreams: 1 })
  const address = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}${path(UNKNOWN_ID)}`
  const refused = await fetch(address)
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1'])
  await refused.text()
  socket.destroy()
  await eventually(() => followers.size === 0, 'the followers to leave')
  const stream = await openEventStream(address, {})
  assert.equal((await stream.next())?.event, 'snapshot')
  stream.close()
  await app.close()
})

test('streams beyond the share of a caller or a workspace are rejected, although the process has places left', async () => {
  for (const share of [{ ofCaller: 1 }, { ofWorkspace: 1 }]) {
    const { app, socket } = await streamsAlone(async () => [], {
      mostStreams: 9,
      ofCaller: 9,
      ofWorkspace: 9,
      ...share,
    })
    const address = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}${path(UNKNOWN_ID)}`
    const refused = await fetch(address)
    assert.equal(refused.status, 503)
    await refused.text()
    socket.destroy()
    await app.close()
  }
})

test("HEAD returns the stream's type and ends", async () => {
  const headers = { authorization: `Bearer ${service.operatorToken}` }
  const reply = await fetch(`${service.url}/operator/v1${path()}`, { method: 'HEAD', headers })
  assert.deepEqual([reply.status, reply.headers.get('content-type')], [200, 'text/event-stream; charset=utf-8'])
  await calls.untilFollowers(0)
})

test('a stream requires a token, its workspace and an existing environment', async () => {
  assert.deepEqual(refusalOf(await service.call(`/operator/v1${path()}`)), [401, 'unauthenticated'])
  assert.deepEqual(refusalOf(await service.operator(path(UNKNOWN_ID))), [404, 'not_found'])
  assert.deepEqual(refusalOf(await service.operator(path('x'))), [400, 'invalid_request'])
})
