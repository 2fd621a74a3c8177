/** A misspelt member of a body is refused, instead of acting without it. The public interface ignores unknown members. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Problem } from '@tacho/contract/web/errors.ts'
import { OPERATOR_ROWS, populate, addressOf, bodyOf, type JsonSchema } from '../../setup/route-samples.ts'
import { startService, type Service } from '../../setup/service.ts'

let service: Service
before(async () => {
  service = await startService({ webhookNetworks: '127.0.0.0/8' })
})
after(() => service.close())

/** Objects with fixed members, and where they are in a body. */
function* objectsIn(schema: JsonSchema, at: string): Generator<[string, JsonSchema]> {
  if (schema.properties) yield [at, schema]
  for (const [name, member] of Object.entries(schema.properties ?? {})) yield* objectsIn(member, `${at}/${name}`)
  if (schema.items) yield* objectsIn(schema.items, `${at}/0`)
  for (const one of schema.anyOf ?? []) yield* objectsIn(one, at)
}

test('no body of the operator API has an object that takes members without a name', () => {
  const objects = OPERATOR_ROWS.flatMap(({ name, route }) => [...objectsIn((route.body ?? {}) as JsonSchema, name)])
  assert.ok(objects.length > 60)
  const open = objects.filter(([, { additionalProperties }]) => additionalProperties !== false)
  assert.deepEqual(
    open.map(([at]) => at),
    [],
  )
})

test('every operation refuses a member that its body does not have', async () => {
  const { ids } = await populate(service, 'acme')
  let asked = 0
  for (const row of OPERATOR_ROWS) {
    if (row.route.body === undefined) continue
    const body = { ...(bodyOf(row.route) as object), zzz: 1 }
    const { status, body: problem } = await service.call<Problem>(addressOf(row, ids), {
      body,
      headers: { authorization: `Bearer ${service.operatorToken}` },
    })
    // Some belong to people who signed in, and are refused to a token before.
    if (status === 403 || status === 401) continue
    asked++
    assert.equal(status, 400, row.name)
    assert.match(problem.detail ?? '', /The body must have no fields other than /, row.name)
  }
  assert.ok(asked > 40, `${asked}`)
})

test('the refusal names the field that was meant, and nothing is made', async () => {
  const { workspaceId, environmentId } = await service.newTenant('globex')
  const refused = async (path: string, body: object) => {
    const answer = await service.operator<Problem>(path, { body })
    assert.equal(answer.status, 400, answer.text)
    return answer.body.detail ?? ''
  }
  const policy = { policyId: 'p', condition: 'true', severity: 'LOW', action: 'WARN' }
  const at = `/workspaces/${workspaceId}`
  assert.match(await refused(`${at}/policies`, { ...policy, onerror: 'ignore' }), /: did you mean onError\?$/)
  const token = { name: 't', role: 'viewer', expiresat: '2030-01-01T00:00:00.000Z' }
  assert.match(await refused(`${at}/tokens`, token), /: did you mean expiresAt\?$/)
  const key = { name: 'k', scopes: ['usage:read'], expires_at: '2030-01-01T00:00:00.000Z', constructor: 1 }
  assert.match(await refused(`/environments/${environmentId}/keys`, key), /: did you mean expiresAt\?$/)
  const deployed = { items: [{ kind: 'policy', id: 'p', version: '1', versoin: '2' }] }
  assert.match(await refused(`/environments/${environmentId}/deployments`, deployed), /^items\/0 .*mean version\?$/)
  for (const list of ['policies', 'tokens']) {
    const { body } = await service.operator<{ items: object[] }>(`${at}/${list}`)
    assert.deepEqual(body.items, [], list)
  }
})
