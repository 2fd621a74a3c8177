/** An import must not change what clients receive, the audit log, or data of other tenants. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { MOST_IMPORTED_VERSIONS } from '../../../src/domain/data/imported-values.ts'
import { eventually } from '../../setup/eventually.ts'
import { exported, filled, linesOf, ofType, requestsOf, send, type Exported } from '../../setup/export-service.ts'
import { event, startService, type Service } from '../../setup/service.ts'
import { refusalOf } from '../web/contract.ts'

const HEAD = '{"type":"export","version":1,"workspace":"acme","environment":"production","filter":{}}'
const CLIENT = 'billing-1'

let service: Service
let source: Exported & { workspaceId: string }
let whole: string
before(async () => {
  service = await startService({ webhookNetworks: '127.0.0.0/8' })
  source = { service, ...(await filled(service)) }
  whole = await exported(source)
})
after(() => service.close())

let tenants = 0
const newTenant = async () => ({ service, ...(await service.newTenant(`importer-${++tenants}`)) })

/** An imported decision that no person made in this installation. */
const forged = (change: object = {}) =>
  JSON.stringify({
    ...ofType(whole, 'approval')[0],
    id: randomUUID(),
    clientId: CLIENT,
    clientRequestId: randomUUID(),
    expiresAt: Date.now() + 3_600_000,
    ...change,
  })

async function actionsIn(workspaceId: string): Promise<string[]> {
  const { body } = await service.operator<{ items: { action: string }[] }>(`/workspaces/${workspaceId}/audit`)
  return body.items.map(({ action }) => action)
}

const imports = (actions: string[]) => actions.filter((action) => action === 'environment.import').length

test('no row is taken before an import says what it is, in an empty environment, and is in the audit log', async () => {
  const target = await newTenant()
  const key = await service.newKey({ scopes: ['events:write'], environmentId: target.environmentId })
  assert.deepEqual(refusalOf(await send(target, [forged()], true)), [400, 'invalid_request'])
  assert.deepEqual(refusalOf(await send(target, [HEAD, forged()], true)), [409, 'conflict'])
  assert.equal(imports(await actionsIn(target.workspaceId)), 0)
  await service.record([event()], key)
  assert.deepEqual(refusalOf(await send(target, [HEAD, forged()])), [409, 'conflict'])
  const approvals = `/environments/${target.environmentId}/approvals`
  assert.deepEqual((await service.operator<{ items: object[] }>(approvals)).body.items, [])

  const empty = await newTenant()
  assert.equal((await send(empty, [HEAD, forged()])).status, 200)
  assert.equal((await send(empty, [HEAD, forged()], true)).status, 200)
  assert.deepEqual(refusalOf(await send(empty, [HEAD.replace('acme', 'other'), forged()], true)), [409, 'conflict'])
  assert.equal(imports(await actionsIn(empty.workspaceId)), 1, 'one entry for what one actor imports within an hour')
  const { body } = await service.operator<{ token: string }>(`/workspaces/${empty.workspaceId}/tokens`, {
    body: { name: 'other', role: 'owner' },
  })
  const other = await service.operator(`/environments/${empty.environmentId}/import`, {
    headers: { authorization: `Bearer ${body.token}` },
    body: { lines: [HEAD, forged()], resume: true },
  })
  assert.equal(other.status, 200, other.text)
  assert.equal(imports(await actionsIn(empty.workspaceId)), 2)
})

test('an imported approval is marked, tells no client anything, and is decided by nobody', async () => {
  const target = await newTenant()
  const { environmentId } = target
  const [approved, pending] = [forged(), forged({ status: 'PENDING', decidedAt: null, deciderKind: null })]
  const { status, text } = await send(target, [HEAD, approved, pending])
  assert.equal(status, 200, text)
  const key = await service.newKey({ scopes: ['events:write', 'policies:read'], environmentId })
  const headers = { 'x-api-key': key, 'x-service-client-id': CLIENT }
  for (const line of [approved, pending]) {
    const { id, clientRequestId, toolName, inputHash } = JSON.parse(line) as Record<string, string>
    assert.equal((await service.api(`/firewall-approvals/${id}`, { headers })).status, 404)
    const again = await service.api('/firewall-approvals', { headers, body: { clientRequestId, toolName, inputHash } })
    assert.deepEqual(refusalOf(again), [409, 'conflict'])
    const path = `/environments/${environmentId}/approvals/${id}`
    const shown = await service.operator<{ importedAt: string | null }>(path)
    assert.ok(shown.body.importedAt !== null && Date.now() - Date.parse(shown.body.importedAt) < 60_000)
    const decided = await service.operator(`${path}/decision`, { body: { decision: 'APPROVED' } })
    assert.deepEqual(refusalOf(decided), [409, 'conflict'])
  }
  const own = await service.api<{ id: string }>('/firewall-approvals', {
    headers,
    body: { clientRequestId: randomUUID(), toolName: 'pay', inputHash: 'ab'.repeat(32) },
  })
  const seen = await service.operator<{ importedAt: null }>(`/environments/${environmentId}/approvals/${own.body.id}`)
  assert.equal(seen.body.importedAt, null)
})

test('imported authors are marked, until somebody here deploys or writes', async () => {
  const target = await newTenant()
  for (const [index, lines] of requestsOf(whole).entries()) {
    const { status, text } = await send(target, lines, index > 0)
    assert.equal(status, 200, text)
  }
  const home = `/environments/${target.environmentId}`
  const workspace = `/workspaces/${target.workspaceId}`
  interface Row {
    id: string
    kind: string
    version: string
    promptId: string
    policyId: string
    importedAt: string | null
    newest: { importedAt: string | null }
  }
  const rowsOf = async (path: string) => (await service.operator<{ items: Row[] }>(path)).body.items
  const issues = await rowsOf(`${home}/issues`)
  const activity = await Promise.all(issues.map(({ id }) => rowsOf(`${home}/issues/${id}/activity`)))
  const prompts = await rowsOf(`${workspace}/prompts`)
  const policies = await rowsOf(`${workspace}/policies`)
  const versions = await rowsOf(`${workspace}/prompts/${prompts[0]?.promptId}/versions`)
  const ofPolicy = await rowsOf(`${workspace}/policies/${policies[0]?.policyId}/versions`)
  const deployments = await rowsOf(`${home}/deployments`)
  const changes = await rowsOf(`${home}/deployments/changes`)
  for (const rows of [activity.flat(), prompts.map(({ newest }) => newest), versions, ofPolicy, deployments, changes]) {
    assert.ok(rows.length > 0)
    for (const { importedAt } of rows) assert.ok(Date.now() - Date.parse(importedAt ?? '') < 60_000)
  }

  const [issue] = issues
  const comment = await service.operator<Row>(`${home}/issues/${issue?.id}/comments`, { body: { text: 'here' } })
  assert.equal(comment.body.importedAt, null)
  assert.equal((await rowsOf(`${home}/issues/${issue?.id}/activity`))[0]?.importedAt, null)
  const path = `${workspace}/prompts/${prompts[0]?.promptId}/versions`
  const written = await service.operator<Row>(path, { body: { content: 'new here' } })
  assert.equal(written.body.importedAt, null)
  const item = { kind: 'prompt', id: prompts[0]?.promptId, version: written.body.version }
  const deployed = await service.operator(`${home}/deployments`, { body: { items: [item] } })
  assert.equal(deployed.status, 200, deployed.text)
  const now = (await rowsOf(`${home}/deployments`)).find(({ id }) => id === item.id)
  assert.deepEqual([now?.version, now?.importedAt], [item.version, null])
  assert.equal((await rowsOf(`${home}/deployments/changes`))[0]?.importedAt, null)
})

test('ids of another tenant are neither taken nor told', async () => {
  const lines = linesOf(whole).slice(1)
  const [first, second] = [await newTenant(), await newTenant()]
  for (const target of [first, second]) {
    for (let at = 0; at < lines.length; at += 500) {
      const some = lines.slice(at, at + 500).filter((line) => !line.includes('"type":"event"'))
      const { status, text } = await send(target, [HEAD, ...some], at > 0)
      assert.equal(status, 200, text)
    }
    const read = async (path: string) =>
      (await service.operator<{ items: { id?: string; promptId?: string }[] }>(path)).body.items.length
    assert.ok((await read(`/workspaces/${target.workspaceId}/prompts?archived=true`)) > 1)
    assert.ok((await read(`/environments/${target.environmentId}/run-views`)) > 0)
  }
  assert.equal((await exported(source)) === whole, true, 'the source is unchanged')
})

test('an agent with the id of something else, once erased, leaves the audit entries about that', async () => {
  const target = await newTenant()
  const { environmentId, workspaceId } = target
  const webhook = await service.operator<{ id: string }>(`/environments/${environmentId}/webhooks`, {
    body: { url: 'http://127.0.0.1:9/' },
  })
  const detailOf = async (action: string) => {
    const { body } = await service.operator<{ items: { action: string; detail: object }[] }>(
      `/workspaces/${workspaceId}/audit`,
    )
    return body.items.find((entry) => entry.action === action)?.detail ?? assert.fail(`no ${action}`)
  }
  const before = await detailOf('webhook.create')
  const agent = { type: 'agent', id: webhook.body.id, externalId: 'a-1', name: 'A', nameTime: 1 }
  const sent = await send(target, [HEAD, JSON.stringify(agent)])
  assert.equal(sent.status, 200, sent.text)
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  await service.record([event({ agentId: 'a-1' })], key)
  const erasures = `/environments/${environmentId}/erasures`
  const erased = await service.operator<{ id: string }>(erasures, {
    body: { kind: 'agent', id: 'a-1' },
  })
  assert.ok(erased.status < 300, erased.text)
  await eventually(async () => {
    const { body } = await service.operator<{ status: string }>(`${erasures}/${erased.body.id}`)
    return body.status === 'DONE'
  }, 'the erasure to end')
  assert.deepEqual(await detailOf('webhook.create'), before)
})

test('numbers that the service counts on from leave room, so that an environment can still be deployed to', async () => {
  const head = linesOf(whole)[0] ?? ''
  const [prompt = {}] = ofType(whole, 'prompt')
  const [version = {}] = ofType(whole, 'promptVersion').filter(({ promptId }) => promptId === prompt['id'])
  const lines = (publication: number, newest = 1) => [
    JSON.stringify({ ...prompt, id: promptId, newest }),
    JSON.stringify({ ...version, promptId, id: randomUUID(), number: newest }),
    JSON.stringify({ ...deployment, kind: 'prompt', itemId: promptId, version: newest, publication }),
  ]
  const [deployment = {}] = ofType(whole, 'deployment')
  const promptId = randomUUID()
  const target = await newTenant()
  for (const tooMuch of [lines(MOST_IMPORTED_VERSIONS + 1), lines(1, MOST_IMPORTED_VERSIONS + 1)]) {
    assert.deepEqual(refusalOf(await send(target, [head, ...tooMuch])), [400, 'invalid_request'])
  }
  const most = lines(MOST_IMPORTED_VERSIONS, MOST_IMPORTED_VERSIONS)
  const taken = await send(target, [head, ...most])
  assert.equal(taken.status, 200, taken.text)
  const home = `/environments/${target.environmentId}`
  const next = await service.operator<{ version: string }>(
    `/workspaces/${target.workspaceId}/prompts/${promptId}/versions`,
    { body: { content: 'what follows', follows: String(MOST_IMPORTED_VERSIONS) } },
  )
  assert.equal(next.status, 201, next.text)
  const items = [{ kind: 'prompt', id: promptId, version: next.body.version }]
  const deployed = await service.operator<{ publication: number }>(`${home}/deployments`, { body: { items } })
  assert.equal(deployed.status, 200, deployed.text)
  assert.equal(deployed.body.publication, MOST_IMPORTED_VERSIONS + 1)
})

test('an import neither reads nor changes a prompt of another workspace', async () => {
  const target = { service, ...(await service.newTenant('another')) }
  const { promptId } = ofType(whole, 'promptVersion')[0] ?? assert.fail('no prompt')
  const versions = ofType(whole, 'promptVersion').filter((version) => version['promptId'] === promptId)
  const rows = [
    { ...versions[0], type: 'promptVersion', number: 99, id: '00000000-0000-4000-8000-000000000099' },
    { ...ofType(whole, 'deployment').find(({ kind }) => kind === 'prompt') },
    { ...ofType(whole, 'deploymentChange').find(({ kind }) => kind === 'prompt') },
  ]
  const [head = ''] = linesOf(whole)
  assert.equal((await send(target, [head])).status, 200)
  for (const row of rows) {
    const { status, text } = await send(target, [head, JSON.stringify(row)], true)
    assert.equal(status, 409, text)
    assert.match(text, /lines\[1\]: the workspace does not have its prompt or policy/)
  }
  const deployed = await service.operator<{ items: object[] }>(`/environments/${target.environmentId}/deployments`)
  assert.deepEqual(deployed.body.items, [])
  const listed = `/workspaces/${source.workspaceId}/prompts/${String(promptId)}/versions`
  assert.equal((await service.operator<{ items: object[] }>(listed)).body.items.length, versions.length)
})
