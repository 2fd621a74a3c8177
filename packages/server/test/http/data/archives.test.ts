import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { ApiKey, ApiKeyPage, CreatedApiKey } from '@tacho/contract/tenants/api-key.ts'
import type { Environment, EnvironmentPage } from '@tacho/contract/tenants/workspace.ts'
import type { Erasure } from '@tacho/contract/data/erasure.ts'
import { eventually } from '../../setup/eventually.ts'
import { event, startService, type RunPage, type Service } from '../../setup/service.ts'

const NOW = Date.now()
let now = NOW
let service: Service
before(async () => {
  service = await startService({}, () => now)
})
after(() => service.close())

const post = <Body>(path: string, body?: unknown) => service.operator<Body>(path, { method: 'POST', body })
/** The status of a request with a key. */
const use = async (key: string) => (await service.api('/runs', { headers: { 'x-api-key': key } })).status
const iso = (time: number) => new Date(time).toISOString()

test('an archived environment is hidden and its keys are refused until it is restored', async () => {
  const { workspaceId, environmentId } = await service.newTenant('archived')
  const key = await service.newKey({ scopes: ['usage:read'], environmentId })
  const writer = await service.newKey({ scopes: ['events:write'], environmentId })
  await service.record([event({ runId: 'erased', timestamp: now })], writer)
  const [home, list] = [`/environments/${environmentId}`, `/workspaces/${workspaceId}/environments`]
  assert.equal(await use(key), 200)
  const archived = await post<Environment>(`${home}/archive`)
  assert.deepEqual([archived.status, archived.body.archivedAt], [200, iso(now)])
  assert.equal(await use(key), 401)
  assert.deepEqual((await service.operator<EnvironmentPage>(list)).body.items, [])
  assert.deepEqual((await service.operator<EnvironmentPage>(`${list}?archived=true`)).body.items, [archived.body])
  now += 1_000
  // Archiving again keeps the first time. Operators can still read the environment.
  assert.deepEqual((await post<Environment>(`${home}/archive`)).body, archived.body)
  assert.equal((await service.operator<RunPage>(`${home}/runs`)).body.items.length, 1)
  // Erasure works in an archived environment too, because people were promised it.
  const erased = await service.operator<Erasure>(`${home}/erasures`, { body: { kind: 'run', id: 'erased' } })
  assert.deepEqual([erased.status, erased.body.effectiveAt, erased.body.runs], [201, iso(now), 1])
  assert.deepEqual((await service.operator<RunPage>(`${home}/runs`)).body.items, [])
  await eventually(async () => {
    const { body } = await service.operator<Erasure>(`${home}/erasures/${erased.body.id}`)
    return body.status === 'DONE'
  }, 'the deletion of its events')
  assert.equal((await post<Environment>(`${home}/restore`)).body.archivedAt, null)
  const late = await service.record([event({ runId: 'erased', timestamp: now })], writer)
  assert.deepEqual(late.body.rejections?.[0]?.code, 'erased')
  assert.equal(await use(key), 200)

  assert.equal((await post(`/workspaces/${workspaceId}/archive`)).status, 200)
  assert.equal(await use(key), 401)
  assert.equal((await post(`/workspaces/${workspaceId}/restore`)).status, 200)
  assert.equal(await use(key), 200)
})

test('an archived environment, or one of an archived workspace, takes no import, but its data is still erased', async () => {
  const { workspaceId, environmentId } = await service.newTenant('archived data')
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  const [home, workspace] = [`/environments/${environmentId}`, `/workspaces/${workspaceId}`]
  const lines = ['{"type":"export","version":1}']
  assert.equal((await post(`${home}/import`, { lines })).status, 200)
  const recorded = await service.record([event({ runId: 'one' }), event({ runId: 'two' })], key)
  assert.equal(recorded.body.accepted, 2)
  const send = async () => post(`${home}/import`, { lines, resume: true })
  const runs = async () => {
    const { body } = await service.operator<{ items: { runId: string }[] }>(`${home}/runs`)
    return body.items.map(({ runId }) => runId).toSorted()
  }
  for (const [place, id] of [
    [home, 'one'],
    [workspace, 'two'],
  ]) {
    await post(`${place}/archive`)
    const refused = await send()
    assert.deepEqual([refused.status, /is archived. Restore it/.test(refused.text)], [409, true])
    const left = (await runs()).filter((runId) => runId !== id)
    const erasure = await post<Erasure>(`${home}/erasures`, { kind: 'run', id })
    assert.equal(erasure.status, 201, erasure.text)
    assert.deepEqual(await runs(), left)
    const isRemoved = async () => {
      const { body } = await service.operator<Erasure>(`${home}/erasures/${erasure.body.id}`)
      return body.status === 'DONE'
    }
    await eventually(isRemoved, 'the removal')
    await post(`${place}/restore`)
  }
  assert.equal((await send()).status, 200)
})

test('an archived environment is deleted after a waiting time, unless it is restored', async () => {
  const { environmentId } = await service.newTenant('deleted')
  const home = `/environments/${environmentId}`
  assert.equal((await post(`${home}/delete`)).status, 409)
  await post(`${home}/archive`)
  const ordered = await post<Environment>(`${home}/delete`)
  const waiting = LIMITS.environmentDeletionDays * 86_400_000
  assert.deepEqual([ordered.status, ordered.body.deleteAt], [200, iso(now + waiting)])
  now += 1_000
  assert.deepEqual((await post<Environment>(`${home}/delete`)).body, ordered.body)
  assert.equal((await post<Environment>(`${home}/restore`)).body.deleteAt, null)

  await post(`${home}/archive`)
  await post(`${home}/delete`)
  now += waiting
  await eventually(async () => (await service.operator(`${home}/retention`)).status === 404, 'the deletion')
  assert.equal((await post(`${home}/restore`)).status, 404)
})

test('a workspace, an environment and a prompt are renamed to a free name', async () => {
  const { workspaceId, environmentId } = await service.newTenant('renamed')
  const there = `/workspaces/${workspaceId}`
  await service.operator(`${there}/environments`, { body: { name: 'taken' } })
  const rename = async (path: string, name: string) => {
    const answer = await service.operator<{ name: string }>(`${path}/rename`, { body: { name } })
    assert.ok(answer.status < 500, `${path} ${answer.text}`)
    return answer
  }
  assert.equal((await rename(`/environments/${environmentId}`, 'taken')).status, 409)
  assert.equal((await rename(`/environments/${environmentId}`, 'free')).body.name, 'free')
  assert.equal((await rename(there, 'archived')).status, 409)
  assert.equal((await rename(there, 'renamed again')).body.name, 'renamed again')
  const prompts = ['a', 'b'].map((name) =>
    service.operator<{ promptId: string }>(`${there}/prompts`, { body: { name, content: 'x' } }),
  )
  const [first] = await Promise.all(prompts)
  const prompt = `${there}/prompts/${first?.body.promptId}`
  assert.equal((await rename(prompt, 'b')).status, 409)
  assert.equal((await rename(prompt, 'c')).body.name, 'c')
})

test('a prompt or policy is archived when it is deployed nowhere, and then not deployed', async () => {
  const { workspaceId, environmentId } = await service.newTenant('deployed')
  const there = `/workspaces/${workspaceId}`
  const policy = { policyId: 'p', condition: 'true', severity: 'LOW', action: 'WARN' }
  await service.operator(`${there}/policies`, { body: policy })
  const prompt = await service.operator<{ promptId: string }>(`${there}/prompts`, { body: { name: 'n', content: 'x' } })
  const items = [
    { kind: 'policy', id: 'p', path: `${there}/policies/p`, list: `${there}/policies` },
    {
      kind: 'prompt',
      id: prompt.body.promptId,
      path: `${there}/prompts/${prompt.body.promptId}`,
      list: `${there}/prompts`,
    },
  ]
  for (const { kind, id, path, list } of items) {
    const deploy = (version: string | null) =>
      service.operator(`/environments/${environmentId}/deployments`, { body: { items: [{ kind, id, version }] } })
    const count = async (query: string) =>
      (await service.operator<{ items: unknown[] }>(`${list}${query}`)).body.items.length
    assert.equal((await deploy('1')).status, 200)
    const refused = await post(`${path}/archive`)
    assert.deepEqual([refused.status, /deployed in the environment/.test(refused.text)], [409, true])
    assert.equal((await deploy(null)).status, 200)
    assert.equal((await post(`${path}/archive`)).status, 200)
    assert.deepEqual([await count(''), await count('?archived=true')], [0, 1])
    const again = await deploy('1')
    assert.deepEqual([again.status, /is archived; restore it first/.test(again.text)], [409, true])
    assert.equal((await post(`${path}/restore`)).status, 200)
    assert.equal((await deploy('1')).status, 200)
  }
})

test('a key gets another name, rate and expiry without a new secret, and never more scopes', async () => {
  const keys = `/environments/${service.environmentId}/keys`
  const body = { name: 'wide', scopes: ['usage:read', 'events:write'] }
  const { body: key } = await service.operator<CreatedApiKey>(keys, { body })
  const change = (given: unknown) => service.operator<ApiKey>(`${keys}/${key.id}/change`, { body: given })
  const expiresAt = iso(now + 60_000)
  const changed = await change({ name: 'narrow', scopes: ['usage:read'], requestsPerSecond: 7, expiresAt })
  assert.equal(changed.status, 200, changed.text)
  const { name, scopes, requestsPerSecond } = changed.body
  const rest = [name, scopes, requestsPerSecond, changed.body.expiresAt]
  assert.deepEqual(rest, ['narrow', ['usage:read'], 7, expiresAt])
  assert.equal(await use(key.key), 200)
  assert.equal((await change({ scopes: ['usage:read', 'events:write'] })).status, 409)
  assert.equal((await change({ expiresAt: iso(now - 1) })).status, 400)
  assert.equal((await change({ expiresAt: null })).body.expiresAt, null)
  assert.equal((await change({ colour: 'red' })).status, 400)
  await post(`${keys}/${key.id}/revoke`)
  assert.equal((await change({ name: 'x' })).status, 409)
})

test('a rotated key and its successor both work until the old one ends', async () => {
  const keys = `/environments/${service.environmentId}/keys`
  const { body: old } = await service.operator<CreatedApiKey>(keys, { body: { name: 'k', scopes: ['usage:read'] } })
  const until = now + 60_000
  const rotate = () =>
    service.operator<CreatedApiKey>(`${keys}/${old.id}/rotate`, { body: { oldValidUntil: iso(until) } })
  const [one, other] = await Promise.all([rotate(), rotate()])
  assert.deepEqual(new Set([one.status, other.status]), new Set([201, 409]))
  const next = one.status === 201 ? one.body : other.body
  assert.deepEqual([next.name, next.scopes, next.expiresAt], ['k', ['usage:read'], null])
  assert.deepEqual([await use(old.key), await use(next.key)], [200, 200])
  const { items } = (await service.operator<ApiKeyPage>(keys)).body
  const listed = items.find(({ id }) => id === old.id)
  assert.deepEqual([listed?.replacedBy, listed?.expiresAt], [next.id, iso(until)])
  assert.ok(items.some(({ id }) => id === next.id))
  now = until
  assert.deepEqual([await use(old.key), await use(next.key)], [401, 200])
})
