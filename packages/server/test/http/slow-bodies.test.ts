/** Permissions are checked again after the body of a request has arrived. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { CreatedApiKey } from '@tacho/contract/operator/api-key.ts'
import { event, startService, type Service } from '../setup/service.ts'

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
  // The server has seen the headers.
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
