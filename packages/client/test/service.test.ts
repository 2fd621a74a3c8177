/** Both clients against the real service. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { event, startService, type Service } from '../../server/test/setup/service.ts'
import { eachItem } from '../src/items.ts'
import { createOperatorClient, type OperatorClient } from '../src/operator.ts'
import { createPublicClient, type PublicClient } from '../src/public.ts'
import { throwing } from '../src/throwing.ts'

let service: Service
let agent: PublicClient
let operator: OperatorClient
before(async () => {
  service = await startService()
  agent = createPublicClient({ url: service.url, apiKey: service.apiKey })
  operator = createOperatorClient({ url: service.url, token: service.operatorToken })
})
after(() => service.close())

const HASH = 'ab'.repeat(32)

test('events are recorded and read again, page by page', async () => {
  const body = Array.from({ length: 5 }, () => event({ runId: 'paged' })) as never
  const recorded = await agent.recordEvents({ body })
  assert.deepEqual([recorded.ok && recorded.value.accepted, recorded.status], [5, 200])
  const { listRunEvents } = throwing(agent)
  const found: string[] = []
  for await (const { eventId } of eachItem(listRunEvents, { params: { runId: 'paged' }, query: { limit: 2 } })) {
    found.push(eventId)
  }
  assert.equal(found.length, 5)
})

test('a refusal has the code of the service', async () => {
  const missing = await agent.readRun({ params: { runId: 'nothing' } })
  assert.deepEqual([!missing.ok && missing.code, missing.status], ['not_found', 404])
  const stranger = await createPublicClient({ url: service.url, apiKey: 'x' }).listRuns()
  assert.equal(!stranger.ok && stranger.code, 'unauthenticated')
})

test('an unchanged configuration is a success without a value', async () => {
  const first = await agent.loadRuntimeConfig()
  const tag = first.ok ? first.headers.get('etag') : null
  assert.ok(tag)
  const second = await agent.loadRuntimeConfig({ headers: { 'If-None-Match': tag } })
  assert.deepEqual([second.ok && second.value, second.status], [null, 304])
})

test('the stream of approvals shows pending ones, and decisions as they are made', async () => {
  const params = { environmentId: service.environmentId }
  const asked = await agent.createApproval({
    headers: { 'X-Service-Client-ID': 'c' },
    body: { clientRequestId: 'r', toolName: 'refund', inputHash: HASH },
  })
  assert.ok(asked.ok)
  const { id } = asked.value
  const stream = await operator.streamApprovals({ params })
  assert.ok(stream.ok)
  const told: string[] = []
  for await (const message of stream.value) {
    if (message.event === 'snapshot') {
      told.push(...message.data.items.map(({ status }) => status))
      await operator.decideApproval({ params: { ...params, approvalId: id }, body: { decision: 'APPROVED' } })
    }
    if (message.event === 'changed') told.push(...message.data.items.map(({ status }) => status))
    if (told.includes('APPROVED')) break
  }
  assert.deepEqual(told, ['PENDING', 'APPROVED'])
})

test('a backup comes as bytes', async () => {
  const backup = await operator.createBackup()
  assert.ok(backup.ok)
  let bytes = 0
  for await (const chunk of backup.value) bytes += chunk.length
  assert.equal(bytes, Number(backup.headers.get('content-length')))
})
