/** Permissions are checked again after the body of a request has arrived. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { CreatedApiKey } from '@tacho/contract/tenants/api-key.ts'
import { eventually } from '../../setup/eventually.ts'
import { event, startService, type Service } from '../../setup/service.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

/** Starts a request, and sends the last byte of its body when the test says so. */
async function begin(path: string, headers: Record<string, string>, body: unknown) {
  const text = JSON.stringify(body)
  const about = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
  const sent = request(`${service.url}${path}`, {
    method: 'POST',
    headers: { ...headers, ...about, expect: '100-continue' },
  })
  sent.flushHeaders()
  // The server has read the headers.
  await once(sent, 'continue')
  sent.write(text.slice(0, -1))
  return async (): Promise<number | undefined> => {
    const replied = once(sent, 'response') as Promise<[IncomingMessage]>
    sent.end(text.slice(-1))
    const [reply] = await replied
    reply.resume()
    return reply.statusCode
  }
}

async function newKey(expiresAt: string | null) {
  const path = `/environments/${service.environmentId}/keys`
  const made = await service.operator<CreatedApiKey>(path, { body: { name: 'k', scopes: ['events:write'], expiresAt } })
  return made.body
}

test('a key that is revoked or expires while the body arrives stores nothing', async () => {
  const ways = {
    async revoked({ id }: CreatedApiKey) {
      await service.operator(`/environments/${service.environmentId}/keys/${id}/revoke`, { method: 'POST' })
    },
    expired: () => wait(2_000),
  }
  for (const [way, end] of Object.entries(ways)) {
    const key = await newKey(way === 'expired' ? new Date(Date.now() + 2_000).toISOString() : null)
    const finish = await begin('/openapi/v1/events/batch', { 'x-api-key': key.key }, [event({ runId: way })])
    await end(key)
    assert.equal(await finish(), 401, way)
    assert.equal((await service.api(`/runs/${way}`)).status, 404, way)
  }
})

test('a slow body with a valid key is accepted', async () => {
  const finish = await begin('/openapi/v1/events/batch', { 'x-api-key': service.apiKey }, [event({ runId: 'slow' })])
  assert.equal(await finish(), 200)
  assert.equal((await service.api('/runs/slow')).status, 200)
})

test('an operator token that is revoked while the body arrives decides nothing', async () => {
  interface Made {
    id: string
    token: string
  }
  const [workspace] = (await service.operator<{ items: { id: string }[] }>('/workspaces')).body.items
  const tokens = `/workspaces/${workspace?.id}/tokens`
  for (const isRevoked of [true, false]) {
    const { body: made } = await service.operator<Made>(tokens, { body: { name: 't', role: 'approver' } })
    const headers = { 'x-service-client-id': 'client' }
    const asked = await service.api<{ id: string }>('/firewall-approvals', {
      headers,
      body: { clientRequestId: `${isRevoked}`, toolName: 'refund', inputHash: 'a'.repeat(64) },
    })
    const { id } = asked.body
    const path = `/operator/v1/environments/${service.environmentId}/approvals/${id}/decision`
    const finish = await begin(path, { authorization: `Bearer ${made.token}` }, { decision: 'APPROVED' })
    if (isRevoked) await service.operator(`${tokens}/${made.id}/revoke`, { method: 'POST' })
    assert.equal(await finish(), isRevoked ? 401 : 200)
    const { body } = await service.api<{ status: string }>(`/firewall-approvals/${id}`, { headers })
    assert.equal(body.status, isRevoked ? 'PENDING' : 'APPROVED')
  }
})

/** An upload that never ends. */
async function occupy(to: Service, path: string, headers: Record<string, string>, bytes: number) {
  const upload = request(`${to.url}${path}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', 'transfer-encoding': 'chunked' },
  })
  upload.on('error', () => undefined)
  const replied = once(upload, 'response') as Promise<[IncomingMessage]>
  replied.catch(() => undefined)
  upload.write(Buffer.alloc(bytes, ' '))
  return { replied, end: () => upload.destroy() }
}

const heldBytes = async (from: Service): Promise<number> =>
  Number(/^tacho_body_memory_bytes (\d+)/m.exec((await from.call('/metrics')).text)?.[1])

test('unfinished uploads of one key or address leave room for the bodies of others', async () => {
  const own = await startService({}, Date.now, {}, { bodies: 16 * 1_048_576 })
  const ends: (() => void)[] = []
  try {
    const other = await own.newKey({ scopes: ['events:write'] })
    // The buffer of a large body can be larger than the body, and each unfinished request counts 8 KiB more.
    for (const [path, headers, most, each] of [
      ['/openapi/v1/events/batch', { 'x-api-key': own.apiKey }, 1_000_000, 1_048_576 + 8_192],
      ['/operator/v1/sign-in', {}, 16_000, 16_000 + 8_192],
    ] as const) {
      const before = await heldBytes(own)
      // The share of a key or address is the size of one OpenTelemetry body.
      const share = 4 * 1_048_576
      for (let held = 0; held + each <= share; held += each) ends.push((await occupy(own, path, headers, most)).end)
      await eventually(async () => before + share - (await heldBytes(own)) < each, 'the uploads are in memory')
      assert.ok((await heldBytes(own)) - before <= share)
      const { replied, end } = await occupy(own, path, headers, most)
      ends.push(end)
      const [reply] = await replied
      assert.equal(reply.statusCode, 503, path)
      assert.equal((await own.record([event()], other)).status, 200, path)
    }
  } finally {
    for (const end of ends) end()
    await own.close()
  }
})

test('unfinished uploads that sent nothing yet count too, until they end', async () => {
  const own = await startService({}, Date.now, {}, { bodies: 8 * 1_048_576 })
  const ends: (() => void)[] = []
  try {
    const before = await heldBytes(own)
    const replies: Promise<[IncomingMessage]>[] = []
    // The share of a key is the size of one OpenTelemetry body.
    for (let upload = 0; upload < 4_194_304 / 8_192; upload++) {
      const { replied, end } = await occupy(own, '/openapi/v1/events/batch', { 'x-api-key': own.apiKey }, 1)
      ends.push(end)
      replies.push(replied)
    }
    const [refused] = await Promise.any(replies)
    assert.equal(refused.statusCode, 503)
    for (const end of ends.splice(0)) end()
    await eventually(async () => (await heldBytes(own)) === before, 'the ended uploads to count no longer')
  } finally {
    for (const end of ends) end()
    await own.close()
  }
})

test('unfinished uploads with many keys of one workspace leave room for the bodies of others', async () => {
  const own = await startService({}, Date.now, {}, { bodies: 16 * 1_048_576 })
  const ends: (() => void)[] = []
  try {
    const { environmentId } = await own.newTenant('other')
    const other = await own.newKey({ scopes: ['events:write'], environmentId })
    const most = 1_000_000
    const replies: Promise<[IncomingMessage]>[] = []
    for (let key = 0; key < 6; key++) {
      const headers = { 'x-api-key': await own.newKey({ scopes: ['events:write'] }) }
      for (let upload = 0; upload < 16; upload++) {
        const { replied, end } = await occupy(own, '/openapi/v1/events/batch', headers, most)
        ends.push(end)
        replies.push(replied)
      }
    }
    const [refused] = await Promise.any(replies)
    assert.equal(refused.statusCode, 503)
    // The share of a workspace is two OpenTelemetry bodies, or a quarter of the memory.
    await eventually(async () => (await heldBytes(own)) > 8 * 1_048_576 - most - 8_192, 'the uploads are in memory')
    assert.ok((await heldBytes(own)) <= 8 * 1_048_576)
    assert.equal((await own.record([event()], other)).status, 200)
  } finally {
    for (const end of ends) end()
    await own.close()
  }
})
