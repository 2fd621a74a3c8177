import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { OperatorRoute } from '@tacho/contract/web/route.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import { startService, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf } from '../web/contract.ts'

let service: Service
let tenant: { workspaceId: string; environmentId: string }
before(async () => {
  service = await startService()
  tenant = await service.newTenant('acme')
})
after(() => service.close())

const list = async (query = '') =>
  replyOf('listAudit', await service.operator(`/workspaces/${tenant.workspaceId}/audit${query}`))

const WITHOUT_DECLARED_ENTRY = [
  // The person is not known before the handler runs.
  'signIn',
  'signInWithCode',
  'signInWithRecoveryCode',
  'startOidc',
  'openInvitation',
  'acceptInvitation',
  // These take effect only when they are confirmed.
  'addSecondFactor',
  'openSlackLink',
  'previewErasure',
  'findErasableSteps',
  // The body chooses the action.
  'decideApproval',
  'decideApprovals',
  'switchSearch',
]

test('every route that changes something declares its entry: a noun, a verb and a target', () => {
  const routes: [string, OperatorRoute][] = Object.entries(OPERATOR_ROUTES)
  const without = routes.filter(([, { method, audit }]) => method === 'POST' && !audit).map(([name]) => name)
  assert.deepEqual(without.toSorted(), WITHOUT_DECLARED_ENTRY.toSorted())
  for (const [name, { audit }] of routes) {
    assert.match(audit ? `${audit.action} ${audit.target}` : 'a.b c', /^[a-z_]+\.[a-z_]+ [a-z_]+$/, name)
  }
})

test('every change of a workspace is logged, newest first: who, when, what, and the request id', async () => {
  const keys = `/environments/${tenant.environmentId}/keys`
  const body = { name: 'ingest', scopes: ['events:write'] }
  const made = await service.operator(keys, { body })
  const { id, key } = replyOf('createApiKey', made)
  const revoke = () => service.operator(`${keys}/${id}/revoke`, { method: 'POST' })
  await revoke()
  await revoke()
  await service.operator(keys, { body: { ...body, scopes: [] } })
  const { items } = await list()
  assert.deepEqual(
    items.map(({ action }) => action),
    ['api_key.revoke', 'api_key.create', 'environment.create', 'workspace.create'],
  )
  const entry = items[1]
  assert.deepEqual([entry?.workspaceId, entry?.environmentId], [tenant.workspaceId, tenant.environmentId])
  assert.deepEqual([entry?.actor.kind, entry?.actor.name], ['token', 'first token'])
  assert.deepEqual(entry?.target, { kind: 'api_key', id })
  assert.deepEqual(entry?.detail['scopes'], ['events:write'])
  assert.equal(entry?.requestId, made.headers.get('x-request-id'))
  assert.deepEqual(
    items.map(({ address }) => address),
    items.map(() => '127.0.0.1'),
  )
  assert.ok(!JSON.stringify(items).includes(key.slice(-64)))
})

test('the log can be filtered by action, actor, target and time', async () => {
  const { items } = await list()
  const oldest = items.at(-1)
  assert.ok(oldest)
  const actions = async (query: string) => (await list(query)).items.map(({ action }) => action)
  assert.deepEqual(await actions('?action=workspace.create'), ['workspace.create'])
  assert.deepEqual(await actions('?targetKind=environment'), ['environment.create'])
  assert.deepEqual(await actions(`?targetId=${tenant.workspaceId}`), ['workspace.create'])
  assert.equal((await actions(`?actorId=${oldest.actor.id}`)).length, items.length)
  assert.deepEqual(await actions('?actorId=nobody'), [])
  assert.deepEqual(await actions('?actorId=%00'), [])
  assert.deepEqual(await actions(`?to=${oldest.at}`), [])
  assert.equal((await actions(`?from=${oldest.at}`)).length, items.length)
  for (const query of ['?from=yesterday', '?action=', `?action=${'a'.repeat(256)}`, '?limit=201']) {
    const refused = await service.operator(`/workspaces/${tenant.workspaceId}/audit${query}`)
    assert.deepEqual(refusalOf(refused), [400, 'invalid_request'], query)
  }
})

test('paging by cursor returns every entry once, and a cursor is valid only for this list and filter', async () => {
  const all = (await list()).items.map(({ id }) => id)
  const met: string[] = []
  let cursor = ''
  do {
    const page = await list(`?limit=1${cursor}`)
    met.push(...page.items.map(({ id }) => id))
    cursor = page.nextCursor === null ? '' : `&cursor=${encodeURIComponent(page.nextCursor)}`
    if (met.length === 1) {
      for (const path of [`/workspaces/${tenant.workspaceId}/audit?action=x`, '/audit?limit=1']) {
        assert.deepEqual(refusalOf(await service.operator(path + cursor)), [400, 'invalid_cursor'])
      }
    }
  } while (cursor !== '')
  assert.deepEqual(met, all)
})

test("the installation's log has entries of every workspace and of none, including full downloads", async () => {
  const foreign = await service.newTenant('globex')
  await (await fetch(`${service.url}/operator/v1/backups`, { method: 'POST', headers: bearer() })).arrayBuffer()
  const { items } = replyOf('listInstallationAudit', await service.operator('/audit'))
  assert.equal(items[0]?.action, 'backup.create')
  assert.equal(items[0]?.workspaceId, null)
  const workspaces = new Set(items.map(({ workspaceId }) => workspaceId))
  assert.ok(workspaces.has(foreign.workspaceId) && workspaces.has(tenant.workspaceId))
  assert.ok(!(await list()).items.some(({ workspaceId }) => workspaceId !== tenant.workspaceId))
})

function bearer(): Record<string, string> {
  return { authorization: `Bearer ${service.operatorToken}` }
}
