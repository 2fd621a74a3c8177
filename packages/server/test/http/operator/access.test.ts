import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { OperatorRoute, Role } from '@tacho/contract/operator/access.ts'
import type { AuditPage } from '@tacho/contract/operator/audit.ts'
import type { CreatedOperatorToken } from '@tacho/contract/operator/token.ts'
import { OPERATOR_PREFIX, OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import { startService, type Service } from '../../setup/service.ts'
import { UNKNOWN_ID } from './contract.ts'
import { ROLES } from '@tacho/contract/words.ts'

let service: Service
let tenant: { workspaceId: string; environmentId: string }
const tokens = new Map<Role | 'installation' | 'foreign', string>()

before(async () => {
  service = await startService()
  tenant = await service.newTenant('acme')
  const foreign = await service.newTenant('globex')
  for (const role of ROLES) tokens.set(role, await newToken(tenant.workspaceId, role))
  tokens.set('foreign', await newToken(foreign.workspaceId, 'owner'))
  tokens.set('installation', service.operatorToken)
})
after(() => service.close())

async function newToken(workspaceId: string, role: Role): Promise<string> {
  const path = `/workspaces/${workspaceId}/tokens`
  const { status, body } = await service.operator<CreatedOperatorToken>(path, { body: { name: role, role } })
  assert.equal(status, 201)
  return body.token
}

/** Every row that needs a credential. */
const rows = (Object.entries(OPERATOR_ROUTES) as [string, OperatorRoute][]).filter(
  ([, { access }]) => access !== 'anyone',
)

/** The status of a row, and its body where it is an error; the ids of the path are the tenant's unless told. */
async function ask({ method, path }: OperatorRoute, token: string | undefined, ids: Record<string, string> = tenant) {
  const address = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? UNKNOWN_ID)
  const response = await fetch(service.url + OPERATOR_PREFIX + address, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
    },
    ...(method === 'POST' ? { body: '{}' } : {}),
  })
  // What is well may go on for ever.
  if (response.status < 400) await response.body?.cancel()
  const body = response.status < 400 ? null : ((await response.json()) as { detail?: string; title: string })
  return { status: response.status, body }
}

const namesTenant = ({ path }: OperatorRoute) => /\{(workspaceId|environmentId)\}/.test(path)

test('no endpoint is served without a credential', async () => {
  for (const [name, route] of rows) assert.equal((await ask(route, undefined)).status, 401, name)
})

test('objects of another workspace look like missing ones', async () => {
  const unknown = { workspaceId: UNKNOWN_ID, environmentId: UNKNOWN_ID }
  for (const [name, route] of rows.filter(([, row]) => namesTenant(row))) {
    const [foreign, absent] = [await ask(route, tokens.get('foreign')), await ask(route, tokens.get('owner'), unknown)]
    assert.equal(foreign.status, 404, name)
    assert.deepEqual([foreign.status, foreign.body?.detail], [absent.status, absent.body?.detail], name)
  }
})

test("an attempt to change another workspace is in the installation's audit log, and in no other", async () => {
  const deploy: OperatorRoute = OPERATOR_ROUTES.deploy
  assert.equal((await ask(deploy, tokens.get('foreign'))).status, 404)
  const action = 'action=endpoint.call.refused'
  const { items } = (await service.operator<AuditPage>(`/audit?${action}&limit=1`)).body
  assert.deepEqual(
    items.map(({ workspaceId, target, detail }) => [workspaceId, target.id, detail['environmentId']]),
    [[null, `POST ${deploy.path}`, tenant.environmentId]],
  )
  const own = (await service.operator<AuditPage>(`/workspaces/${tenant.workspaceId}/audit?${action}`)).body
  assert.ok(own.items.every(({ target }) => target.id !== `POST ${deploy.path}`))
})

test("a role below the endpoint's is rejected, the role itself is accepted", async () => {
  const order = [...ROLES, 'installation'] as const
  for (const [name, route] of rows) {
    const { access } = route
    if (access === 'signed-in' || access === 'anyone') {
      assert.notEqual((await ask(route, tokens.get('foreign'))).status, 401, name)
      continue
    }
    const needed = order.indexOf(access)
    for (const role of order.slice(0, needed)) assert.equal((await ask(route, tokens.get(role))).status, 403, name)
    for (const role of order.slice(needed)) {
      const { status } = await ask(route, tokens.get(role))
      assert.ok(![401, 403].includes(status) && status < 500, `${name} as ${role}: ${status}`)
    }
  }
})

test('an endpoint below a workspace requires a role in that workspace', () => {
  for (const [name, route] of rows) {
    const byRole = (ROLES as readonly string[]).includes(route.access)
    assert.equal(byRole, namesTenant(route), name)
  }
})
