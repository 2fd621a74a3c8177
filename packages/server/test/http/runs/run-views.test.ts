import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { AuditPage } from '@tacho/contract/people/audit.ts'
import type { RunView, RunViewPage } from '@tacho/contract/runs/run-view.ts'
import { startService, type Service } from '../../setup/service.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

const home = () => `/environments/${service.environmentId}/run-views`
const create = (body: unknown) => service.operator<RunView>(home(), { body })
const list = async (query = '') => (await service.operator<RunViewPage>(`${home()}${query}`)).body

test('a view is saved with the filters of the list of runs, changed and removed, and each act is audited', async () => {
  const query = { status: 'FAILED', tool: 'refund', minCost: '0.25', minLengthMs: 5_000, hasErrors: 'true' }
  const { status, body: view } = await create({ name: 'Refunds', query, lastHours: 24, columns: ['status', 'run'] })
  assert.equal(status, 201)
  assert.deepEqual([view.query, view.lastHours, view.columns], [query, 24, ['status', 'run']])
  assert.deepEqual((await list()).items, [view])

  const one = `${home()}/${view.id.toUpperCase()}`
  const renamed = await service.operator<RunView>(`${one}/change`, { body: { name: 'All refunds', lastHours: null } })
  assert.deepEqual(renamed.body, { ...view, name: 'All refunds', lastHours: null })
  const removed = await service.operator<RunView>(`${one}/remove`, { method: 'POST' })
  assert.deepEqual(removed.body, renamed.body)
  assert.deepEqual((await list()).items, [])
  for (const act of ['change', 'remove']) {
    assert.equal((await service.operator(`${one}/${act}`, { body: {} })).status, 404)
  }
  const { body: workspaces } = await service.operator<{ items: { id: string }[] }>('/workspaces')
  const path = `/workspaces/${workspaces.items[0]?.id}/audit?targetId=${view.id}`
  const { body: audit } = await service.operator<AuditPage>(path)
  const acts = audit.items.map(({ action }) => action).toSorted()
  assert.deepEqual(acts, ['run_view.change', 'run_view.create', 'run_view.remove'])
})

test('what the list of runs would refuse is refused, and nothing is saved', async () => {
  const fine = { name: 'Fine', query: {} }
  for (const [change, at] of [
    [{ name: '' }, '/name'],
    [{ name: 'x'.repeat(LIMITS.runViewNameChars + 1) }, '/name'],
    [{ name: 'a\u0000b' }, '/name'],
    [{ query: { status: 'BROKEN' } }, '/query/status'],
    [{ query: { minCost: 'much' } }, '/query/minCost'],
    [{ query: { colour: 'red' } }, '/query'],
    [{ query: { limit: 5 } }, '/query'],
    [{ query: { tool: 'a\u0000b' } }, '/query/tool'],
    [{ query: { from: '2026-12-31T23:59:60Z' } }, '/query/from'],
    [{ lastHours: 0 }, '/lastHours'],
    [{ lastHours: LIMITS.runViewHours + 1 }, '/lastHours'],
    [{ columns: ['colour'] }, '/columns'],
    [{ columns: ['run', 'run'] }, '/columns'],
  ] as const) {
    const { status, body, text } = await create({ ...fine, ...change })
    const [error] = (body as unknown as { errors: { path: string }[] }).errors ?? []
    assert.ok(status === 400 && error?.path.startsWith(at), `${JSON.stringify(change)}: ${text}`)
  }
  assert.deepEqual((await list()).items, [])
  assert.equal((await create({ name: '𝄞'.repeat(LIMITS.runViewNameChars), query: {}, lastHours: null })).status, 201)
})

test('a name is used once, and views are limited in an environment', async () => {
  const { environmentId } = await service.newTenant('limited')
  const path = `/environments/${environmentId}/run-views`
  const save = (name: string) => service.operator<RunView>(path, { body: { name, query: {} } })
  const first = await save('view 0')
  assert.equal((await save('view 0')).status, 409)
  for (let index = 1; index < LIMITS.runViews; index++) assert.equal((await save(`view ${index}`)).status, 201)
  const over = await save('one more')
  assert.equal(over.status, 409)
  assert.match(over.text, /limit of 100 views/)
  const taken = await service.operator(`${path}/${first.body.id}/change`, { body: { name: 'view 1' } })
  assert.equal(taken.status, 409)
  assert.match(taken.text, /already has a view with this name/)
  const page = await service.operator<RunViewPage>(`${path}?limit=99`)
  const rest = await service.operator<RunViewPage>(`${path}?cursor=${page.body.nextCursor}`)
  assert.deepEqual([page.body.items.length, rest.body.items.length, rest.body.nextCursor], [99, 1, null])
})

test('a viewer reads views, an approver changes them, and another tenant finds none', async () => {
  const { workspaceId, environmentId } = await service.newTenant('roles')
  const path = `/environments/${environmentId}/run-views`
  const tokenOf = async (role: string) => {
    const body = { name: role, role }
    return (await service.operator<{ token: string }>(`/workspaces/${workspaceId}/tokens`, { body })).body.token
  }
  const [viewer, approver] = [await tokenOf('viewer'), await tokenOf('approver')]
  const as = (token: string, at: string, body?: unknown) =>
    service.operator<RunView>(at, { headers: { authorization: `Bearer ${token}` }, ...(body ? { body } : {}) })
  const saved = await as(approver, path, { name: 'Mine', query: {} })
  assert.equal(saved.status, 201)
  assert.equal((await as(viewer, path)).status, 200)
  const one = `${path}/${saved.body.id}`
  for (const [at, body] of [
    [path, { name: 'No', query: {} }],
    [`${one}/change`, { name: 'No' }],
    [`${one}/remove`, {}],
  ] as const) {
    assert.equal((await as(viewer, at, body)).status, 403, at)
  }
  assert.equal((await as(approver, home())).status, 404)
  assert.equal((await service.operator(`${home()}/${saved.body.id}/change`, { body: { name: 'x' } })).status, 404)
})
