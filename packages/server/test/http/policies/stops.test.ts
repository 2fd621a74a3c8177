import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { after, before, test } from 'node:test'
import type { AuditEntry } from '@tacho/contract/people/audit.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Stop, StopPage } from '@tacho/contract/policies/stop.ts'
import type { RuntimeConfig } from '@tacho/contract/policies/runtime-config.ts'
import { openSqliteStorage } from '../../../src/storage/sqlite/open.ts'
import { approvalCalls, CLIENT, type ApprovalCalls } from '../../setup/approval-service.ts'
import { eventually } from '../../setup/eventually.ts'
import type { Agent } from '@tacho/contract/runs/agent.ts'
import { event, startService, type Service } from '../../setup/service.ts'

let service: Service
let approvals: ApprovalCalls
before(async () => {
  service = await startService()
  approvals = approvalCalls(service)
})
after(() => service.close())

type Made = Stop & { isNew: boolean; isKnown: boolean; rejected: number }
const path = () => `/environments/${service.environmentId}/stops`
const stop = (body: object) => service.operator<Made>(path(), { body })
const resume = (id: string, body: object = {}) => service.operator<Stop>(`${path()}/${id}/resume`, { body })
const list = (query = '') => service.operator<StopPage>(`${path()}${query}`)
const load = (headers = {}) => service.api<RuntimeConfig>('/runtime-config', { headers })
const agent = { scope: 'agent', target: 'support', reason: 'It pays twice' }

test('a stop is served at once with the name of the operator, and its end too; both are in the audit log', async () => {
  const first = await load()
  const made = await stop(agent)
  assert.deepEqual([made.status, made.body.isNew, made.body.isKnown], [201, true, false])
  const { body } = await load({ 'if-none-match': first.headers.get('etag') ?? '' })
  const [policy] = body.policies
  assert.deepEqual(
    [policy?.policyId, policy?.action, policy?.severity, policy?.description],
    [`stop:${made.body.id}`, 'BLOCK', 'CRITICAL', `Message: Stopped by ${made.body.stoppedBy}. Reason: It pays twice`],
  )
  assert.equal((await stop(agent)).body.isNew, false)
  assert.deepEqual(
    (await list()).body.items.map(({ id }) => id),
    [made.body.id],
  )
  const ended = await resume(made.body.id, { reason: 'mended' })
  assert.deepEqual([ended.status, ended.body.resumeReason], [200, 'mended'])
  assert.equal((await resume(made.body.id)).status, 409)
  assert.deepEqual((await load()).body, first.body)
  assert.deepEqual((await list()).body.items, [])
  assert.equal((await list('?state=all')).body.items[0]?.resumedBy, ended.body.resumedBy)
  const { items } = (await service.operator<{ items: AuditEntry[] }>('/audit')).body
  assert.deepEqual(
    items.filter(({ target }) => target.id === made.body.id).map(({ action }) => action),
    ['stop.resume.refused', 'stop.resume', 'stop.create'],
  )
})

test('a stop names its target, except the environment, and needs a reason of bounded length', async () => {
  const faults = [
    { scope: 'agent', reason: 'x' },
    { scope: 'environment', target: 'a', reason: 'x' },
    { scope: 'agent', target: 'a' },
    { scope: 'agent', target: 'a', reason: '' },
    { scope: 'agent', target: 'a', reason: 'x'.repeat(LIMITS.stopReasonChars + 1) },
    { scope: 'agent', target: 'a\0', reason: 'x' },
    { scope: 'tool', target: 'a', reason: 'x' },
    { scope: 'agent', target: '\u0001'.repeat(1_000), reason: 'x' },
  ]
  for (const body of faults) assert.equal((await stop(body)).status, 400, JSON.stringify(body))
  for (const id of ['nope', '019a0c44-3700-7686-a2e1-3c01640563f0'])
    assert.ok([400, 404].includes((await resume(id)).status))
  const longest = await stop({ scope: 'environment', reason: 'x'.repeat(LIMITS.stopReasonChars) })
  assert.equal(longest.status, 201)
  await resume(longest.body.id)
})

test('a stop names every agent that is shown under a name, or says that it cannot', async () => {
  const made = async (count: number, name: string) => {
    const ids = Array.from({ length: count }, (_, n) => `${name}-${n}-${'x'.repeat(20)}`)
    await service.record(ids.map((agentId) => event({ runId: agentId, agentId, agentName: agentId })))
    const { items } = (
      await service.operator<{ items: Agent[] }>(`/environments/${service.environmentId}/agents?limit=100`)
    ).body
    for (const { id, agentId } of items)
      if (ids.includes(agentId ?? ''))
        await service.operator(`/environments/${service.environmentId}/agents/${id}/rename`, { body: { name } })
    return ids
  }
  const few = await made(25, 'few')
  const stopped = await stop({ scope: 'agent', target: 'few', reason: 'x' })
  const { condition = '' } = (await load()).body.policies[0] ?? {}
  assert.deepEqual(
    few.filter((id) => !condition.includes(JSON.stringify(id))),
    [],
  )
  await resume(stopped.body.id)
  await made(70, 'many')
  const refused = await stop({ scope: 'agent', target: 'many', reason: 'x' })
  assert.equal(refused.status, 409)
  assert.match(refused.text, /stop each by its id/)
  assert.deepEqual((await list()).body.items, [])
})

test('a waiting call of a stopped agent is rejected at once, a later one as soon as it asks, and an approved one does not run', async () => {
  const { id: waiting } = (await approvals.ask({ agentId: 'support' })).body
  const { id: approved } = (await approvals.ask({ agentId: 'support' })).body
  await approvals.decide(approved, 'APPROVED')
  const wait = approvals.read(waiting, '?wait=30')
  await approvals.untilFollowers(1)
  const { id, rejected, stoppedBy } = (await stop(agent)).body
  assert.equal(rejected, 1)
  const reason = `Stopped by ${stoppedBy}. Reason: It pays twice`
  const said = ({ body }: { body: { status: string; decisionReason: string | null } }) => [
    body.status,
    body.decisionReason,
  ]
  assert.deepEqual(said(await wait), ['REJECTED', reason])
  assert.deepEqual(said(await approvals.ask({ agentId: 'support' })), ['REJECTED', reason])
  assert.deepEqual(said(await approvals.read(approved)), ['REJECTED', reason])
  const claim = {
    sdkInstanceId: CLIENT,
    clientRecordId: `run-${approved}`,
    recordKind: 'DETECTION',
    detectionType: 'RUN',
  }
  const body = { ...claim, agentId: 'support', detectedAt: Date.now() }
  const claimed = await service.api('/issue-records', { body, headers: { 'x-service-client-id': CLIENT } })
  assert.equal(claimed.status, 409)
  assert.ok(claimed.text.includes(reason), claimed.text)
  assert.equal((await approvals.ask({ agentId: 'mailer' })).body.status, 'PENDING')
  await resume(id)
  assert.equal((await approvals.read(approved)).body.status, 'APPROVED')
  assert.equal((await approvals.ask({ agentId: 'support' })).body.status, 'PENDING')
})

test('what a server that was killed in the middle of a stop left waiting is rejected when its client asks', async (t) => {
  const killed = await startService()
  const { apiKey, operatorToken, directory, environmentId } = killed
  const { id: waiting } = (await approvalCalls(killed).ask({ agentId: 'support' })).body
  const { id: other } = (await approvalCalls(killed).ask({ agentId: 'mailer' })).body
  await killed.stop()
  const storage = await openSqliteStorage({ directory, minFreeDiskBytes: 0, onTrouble: (error) => assert.fail(error) })
  const by = { stoppedAt: Date.now(), stopperKind: 'token', stopperId: randomUUID(), stoppedBy: 'Ada' } as const
  await storage.stop({ environmentId, id: randomUUID(), ...agent, scope: 'agent', ...by }, [])
  await storage.close()
  const variables = { TACHO_INIT_API_KEY: apiKey, TACHO_INIT_OPERATOR_TOKEN: operatorToken }
  const next = await startService({ dataDir: directory }, undefined, variables)
  t.after(async () => {
    await next.close()
    rmSync(directory, { recursive: true })
  })
  const { read } = approvalCalls(next)
  const { status, decisionReason } = (await read(waiting)).body
  assert.deepEqual([status, decisionReason], ['REJECTED', 'Stopped by Ada. Reason: It pays twice'])
  assert.equal((await read(other)).body.status, 'PENDING')
})

test('a stop says within seconds how many clients have confirmed it', async () => {
  const poll = async (client: string, etag = '') => {
    const headers = { 'x-service-client-id': client, ...(etag !== '' && { 'if-none-match': etag }) }
    return (await load(headers)).headers.get('etag') ?? etag
  }
  const [early, late] = [await poll('early'), await poll('late')]
  const { id } = (await stop({ scope: 'environment', reason: 'Fire' })).body
  await poll('early', await poll('early', early))
  await poll('late', late)
  const counts = await eventually(async () => {
    const { clients } = (await list()).body
    return clients.confirmed === 1 && clients.unconfirmed >= 1 ? clients : null
  }, 'the clients are counted')
  assert.equal(counts.silent, 0)
  await resume(id)
})
