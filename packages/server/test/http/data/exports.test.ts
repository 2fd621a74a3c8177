/** Exports of environments. */
import assert from 'node:assert/strict'
import { createHash, hash } from 'node:crypto'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { text as readText } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { eventually } from '../../setup/eventually.ts'
import {
  exported,
  filled,
  linesOf,
  ofType,
  pathOf,
  PAYLOADS,
  send,
  typeOf,
  type Exported,
} from '../../setup/export-service.ts'
import { event, startService } from '../../setup/service.ts'
import { refusalOf } from '../web/contract.ts'

let source: Exported & { workspaceId: string }
let whole: string
before(async () => {
  const service = await startService({ webhookNetworks: '127.0.0.0/8' })
  source = { service, ...(await filled(service)) }
  whole = await exported(source)
})
after(() => source.service.close())

test('an export has every table of an environment, and events as they were sent, in the order of their arrival', () => {
  const types = new Set(linesOf(whole).map(typeOf))
  const rows = ['prompt', 'promptVersion', 'policy', 'policyVersion', 'deployment', 'deploymentChange']
  rows.push(
    'runView',
    'agent',
    'model',
    'run',
    'event',
    'score',
    'approval',
    'issueRecord',
    'issue',
    'issueFingerprint',
  )
  assert.deepEqual(types, new Set(['export', ...rows, 'issueAffected', 'issueActivity', 'mark', 'end']))
  const texts = ofType(whole, 'event').map((line) => line['payloadText'])
  assert.ok(texts.includes(PAYLOADS[1]))
  for (const payload of [PAYLOADS[0], PAYLOADS[2], PAYLOADS[3]]) assert.ok(whole.includes(`"payload":${payload}}\n`))
  const mixed = ofType(whole, 'event').filter(({ runId }) => runId === 'mixed')
  assert.deepEqual(
    mixed.map(({ sessionId = null }) => sessionId),
    [null, 'later', 'other', null, null, null],
  )
  assert.equal(ofType(whole, 'run').find(({ runId }) => runId === 'mixed')?.['differingRetries'], 1)
})

test('the line of a run has its end user, tags and metadata; without them, it has no such members', () => {
  const labelsOf = (runId: string) => {
    const { userId, tags, metadata } = ofType(whole, 'run').find((line) => line['runId'] === runId) ?? {}
    return [userId, tags, metadata]
  }
  assert.deepEqual(labelsOf('mixed'), ['customer-7', ['beta', 'eu'], { task: 'refund', tries: '2' }])
  assert.deepEqual(labelsOf('exact 0'), [undefined, undefined, undefined])
})

test('an export says what is archived, and which names operators gave', () => {
  const archived = (type: string) => ofType(whole, type).filter(({ archivedAt }) => typeof archivedAt === 'number')
  assert.deepEqual(
    archived('prompt').map(({ name }) => name),
    ['old'],
  )
  assert.deepEqual(
    archived('policy').map(({ id }) => id),
    ['old'],
  )
  assert.deepEqual(
    archived('agent').map(({ externalId, displayName }) => [externalId, displayName]),
    [['a-1', 'Refunds']],
  )
})

test('an export has the prompts and policies that its environment deployed, and no drafts', () => {
  const deployed = (kind: string) =>
    new Set(ofType(whole, 'deploymentChange').flatMap((line) => (line['kind'] === kind ? [line['itemId']] : [])))
  const all = (type: string, member: string) => new Set(ofType(whole, type).map((line) => line[member]))
  for (const kind of ['prompt', 'policy']) {
    assert.ok(deployed(kind).size > 1)
    assert.deepEqual(all(kind, 'id'), deployed(kind))
    assert.deepEqual(all(`${kind}Version`, `${kind}Id`), deployed(kind))
  }
})

test('the last line has the counts and the checksum of all lines but the marks', () => {
  let sha256 = ''
  const counts: Record<string, number> = {}
  const lines = linesOf(whole)
  for (const line of lines.slice(0, -1)) {
    const type = typeOf(line)
    if (type === 'mark') {
      assert.equal((JSON.parse(line) as { sha256: string }).sha256, sha256)
      continue
    }
    sha256 = createHash('sha256').update(`${sha256}${line}\n`).digest('hex')
    counts[type] = (counts[type] ?? 0) + 1
  }
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  assert.deepEqual(JSON.parse(lines.at(-1) ?? ''), { type: 'end', lines: total, counts, sha256 })
})

test('an export continues after each of its marks with the same bytes', async () => {
  const marks = ofType(whole, 'mark')
  assert.ok(marks.length >= 1)
  for (const { after: at } of marks) {
    const rest = whole.slice(whole.indexOf(`"after":"${String(at)}"}\n`) + String(at).length + 12)
    assert.equal((await exported(source, `?after=${String(at)}`)) === rest, true)
  }
  for (const damaged of ['x', Buffer.from('{"place":{}}').toString('base64url')]) {
    assert.equal((await source.service.operator(pathOf(source, `?after=${damaged}`))).status, 400)
  }
})

test('a filter of the list of runs chooses the runs of an export', async () => {
  const runs = async (query: string) => ofType(await exported(source, query), 'run').map(({ runId }) => runId)
  assert.deepEqual(await runs('?status=FAILED'), ['mixed'])
  assert.deepEqual(await runs('?tool=tool%203'), ['long'])
  assert.deepEqual(await runs('?sessionId=nothing'), [])
  assert.equal((await source.service.operator(pathOf(source, '?status=WRONG'))).status, 400)
})

test('an admin exports, only an owner imports, and both are in the audit log', async () => {
  const { service, workspaceId, environmentId } = source
  const token = async (role: string) => {
    const { body } = await service.operator<{ token: string }>(`/workspaces/${workspaceId}/tokens`, {
      body: { name: role, role },
    })
    return { authorization: `Bearer ${body.token}` }
  }
  const [approver, admin] = [await token('approver'), await token('admin')]
  assert.equal((await service.operator(pathOf(source), { headers: approver })).status, 403)
  assert.equal((await service.operator(pathOf(source, '?status=FAILED'), { headers: admin })).status, 200)
  const lines = ['{"type":"export","version":1}']
  const path = `/environments/${environmentId}/import`
  assert.equal((await service.operator(path, { headers: admin, body: { lines } })).status, 403)
  const empty = await service.operator<{ id: string }>(`/workspaces/${workspaceId}/environments`, {
    body: { name: 'copy' },
  })
  assert.equal((await send({ service, environmentId: empty.body.id }, lines)).status, 200)
  const { body } = await service.operator<{ items: { action: string; detail: object }[] }>(
    `/workspaces/${workspaceId}/audit`,
  )
  const acts = ['environment.import', 'environment.export']
  const found = body.items.filter(({ action }) => acts.includes(action)).slice(0, 2)
  assert.deepEqual(
    found.map(({ action, detail }) => ({ action, detail })),
    [
      { action: 'environment.import', detail: { source: hash('sha256', lines[0] ?? ''), resumed: false } },
      { action: 'environment.export', detail: { filters: ['status'], resumed: false } },
    ],
  )
})

test('readers of one workspace leave places to others; one that goes away, or loses its access, releases its export', async () => {
  const { service } = source
  const { environmentId, workspaceId } = await service.newTenant('large')
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  // More than the buffers of a connection hold.
  const payload = { text: 'x'.repeat(200_000) }
  for (let sent = 0; sent < 20; sent++) {
    const recorded = await service.record(
      Array.from({ length: 5 }, () => event({ payload })),
      key,
    )
    assert.equal(recorded.body.accepted, 5)
  }
  const path = pathOf({ service, environmentId })
  const open = async (token = service.operatorToken) => {
    const headers = { authorization: `Bearer ${token}` }
    const sent = request(`${service.url}/operator/v1${path}`, { headers }).end()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    return answer
  }
  const readers = await Promise.all(Array.from({ length: LIMITS.exportsOfWorkspaceAtOnce }, () => open()))
  assert.deepEqual(refusalOf(await service.operator(`${path}?status=FAILED`)), [503, 'overloaded'])
  assert.equal((await service.operator(`${pathOf(source)}?status=FAILED`)).status, 200)
  for (const reader of readers) reader.destroy()
  const isFree = async () => (await service.operator(`${path}?status=FAILED`)).status === 200
  await eventually(isFree, 'a free place')

  const tokens = `/workspaces/${workspaceId}/tokens`
  const { body: admin } = await service.operator<{ id: string; token: string }>(tokens, {
    body: { name: 'leaves', role: 'admin' },
  })
  const cut = await open(admin.token)
  assert.equal((await service.operator(`${tokens}/${admin.id}/revoke`, { body: {} })).status, 200)
  await assert.rejects(readText(cut), /aborted/)
  await eventually(isFree, 'the place of the revoked token')
})
