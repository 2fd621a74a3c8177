/** Streams, followed runs and long polls that are open while their data is erased. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import type { Erasure, NewErasure } from '@tacho/contract/data/erasure.ts'
import { SCOPES } from '@tacho/contract/web/route.ts'
import { startOnBothEngines, type EngineService } from '../../setup/both-engines.ts'
import { eventually } from '../../setup/eventually.ts'
import { openEventStream } from '../../setup/event-stream.ts'
import { event } from '../../setup/service.ts'

const services = startOnBothEngines({}, (started) => started)

/** Kinds of erasures, and which of a run's ids names its data. */
const KINDS = { run: 'run', session: 'session', agent: 'agent', client: 'client', user: 'session' } as const

for (const [kind, named] of Object.entries(KINDS)) {
  test(`an erasure by ${kind} ends a run that is followed and a long poll, and a stream goes on without it`, async () => {
    for (const each of services) await eraseWhileOpen(each, kind as NewErasure['kind'], named)
  })
}

async function eraseWhileOpen({ engine, service }: EngineService, kind: NewErasure['kind'], named: string) {
  const { environmentId } = await service.newTenant(`${engine} ${kind}`)
  const apiKey = await service.newKey({ scopes: [...SCOPES], environmentId })
  const environment = `/environments/${environmentId}`
  const marker = `zq${randomBytes(5).toString('hex')}`
  const ids = { runId: `${marker} run`, sessionId: `${marker} session`, agentId: `${marker} agent` }
  await service.record([event({ ...ids, clientId: `${marker} client`, label: marker })], apiKey)
  const headersOf = (clientId: string) => ({ 'x-api-key': apiKey, 'x-service-client-id': clientId })
  const ask = async (clientId: string, body: object) => {
    const request = { clientRequestId: clientId, toolName: clientId, inputHash: 'ab'.repeat(32), ...body }
    const asked = await service.api<{ id: string }>('/firewall-approvals', {
      body: request,
      headers: headersOf(clientId),
    })
    assert.equal(asked.status, 201, asked.text)
    return asked.body.id
  }

  const follow = `${environment}/runs/${encodeURIComponent(ids.runId)}/events?order=arrival`
  const page = await service.operator<{ items: unknown[]; nextCursor: string }>(follow)
  assert.deepEqual([page.status, page.body.items.length], [200, 1])
  const id = await ask(`${marker} client`, ids)
  const stream = await openEventStream(`${service.url}/operator/v1${environment}/approvals/stream`, {
    authorization: `Bearer ${service.operatorToken}`,
  })
  assert.ok(JSON.stringify(await stream.next()).includes(marker), 'the snapshot shows the request')
  const polled = service.api<{ code: string }>(`/firewall-approvals/${id}?wait=30`, {
    headers: headersOf(`${marker} client`),
  })
  const areBothOpen = async () => /^tacho_approval_followers 2$/m.test((await service.call('/metrics')).text)
  await eventually(areBothOpen, 'stream and long poll')

  const body = { kind, id: `${marker} ${named}` }
  const erased = await service.operator<Erasure>(`${environment}/erasures`, { body })
  assert.notEqual(erased.body.effectiveAt, null, erased.text)

  const next = `${follow}&cursor=${encodeURIComponent(page.body.nextCursor)}`
  const answers = [await service.operator(follow), await service.operator(next), await polled]
  for (const { status, text } of answers) {
    assert.equal(status, 404, `${engine}: ${text}`)
    assert.ok(!text.includes(marker), text)
  }
  assert.equal((await polled).body.code, 'not_found')
  const later = await ask('other', {})
  const seen = [await stream.next()]
  assert.equal(seen[0]?.event, 'snapshot')
  while (!JSON.stringify(seen).includes(later)) {
    seen.push(await stream.next())
    assert.notEqual(seen.at(-1), null, 'the stream goes on')
  }
  assert.ok(!JSON.stringify(seen).includes(marker))
  stream.close()
  await service.operator(`${environment}/approvals/${later}/decision`, { body: { decision: 'REJECTED' } })
}
