import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { AuditPage } from '@tacho/contract/people/audit.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import type { CreatedOperatorToken } from '@tacho/contract/people/token.ts'
import { startService, type Service } from '../../setup/service.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

test("an attempt to change another workspace is in the installation's audit log, and in no other", async () => {
  const [tenant, foreign] = [await service.newTenant('acme'), await service.newTenant('globex')]
  const owner = { body: { name: 'owner', role: 'owner' } }
  const made = await service.operator<CreatedOperatorToken>(`/workspaces/${foreign.workspaceId}/tokens`, owner)
  const { path } = OPERATOR_ROUTES.deploy
  const answer = await service.operator(path.replace('{environmentId}', tenant.environmentId), {
    body: {},
    headers: { authorization: `Bearer ${made.body.token}` },
  })
  assert.equal(answer.status, 404)
  const action = 'action=endpoint.call.refused'
  const { items } = (await service.operator<AuditPage>(`/audit?${action}&limit=1`)).body
  assert.deepEqual(
    items.map(({ workspaceId, target, detail }) => [workspaceId, target.id, detail['environmentId']]),
    [[null, `POST ${path}`, tenant.environmentId]],
  )
  const own = (await service.operator<AuditPage>(`/workspaces/${tenant.workspaceId}/audit?${action}`)).body
  assert.deepEqual(own.items, [])
})
