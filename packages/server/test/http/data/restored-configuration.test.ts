/** After any import, clients get the configuration of the deployed items, and no other tenant gets any of it. */
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { after, before, test } from 'node:test'
import type { RuntimeConfig } from '@tacho/contract/policies/runtime-config.ts'
import canonicalize from 'canonicalize'
import fc from 'fast-check'
import {
  exported,
  filled,
  linesOf,
  ofType,
  restore,
  requestsOf,
  send,
  type Exported,
} from '../../setup/export-service.ts'
import { startService, type Service } from '../../setup/service.ts'

let service: Service
let source: Exported
let whole: string
before(async () => {
  service = await startService({ webhookNetworks: '127.0.0.0/8' })
  source = { service, ...(await filled(service)) }
  whole = await exported(source)
})
after(() => service.close())

/** The configuration that clients of an environment get. Its revision must be its digest. */
async function served(environmentId: string): Promise<RuntimeConfig> {
  const key = await service.newKey({ scopes: ['config:read', 'policies:read'], environmentId })
  const { status, body, text, headers } = await service.api<RuntimeConfig>('/runtime-config', {
    headers: { 'x-api-key': key },
  })
  assert.equal(status, 200, text)
  const { revision, ...content } = body
  assert.equal(revision, hash('sha256', canonicalize(content) ?? ''), text)
  assert.equal(headers.get('etag'), `W/"${revision}"`)
  return body
}

let tenants = 0
const newTenant = async () => ({ service, ...(await service.newTenant(`tenant-${++tenants}`)) })

test('an import cannot choose the configuration that its own or another tenant gets', async () => {
  const victim = await newTenant()
  const attacker = await newTenant()
  const { revision } = await served((await newTenant()).environmentId)
  const policy = { policyId: 'mine', name: 'Mine', description: null, version: '1', condition: 'true', severity: 'LOW' }
  const body = { revision, prompts: [], policies: [{ ...policy, action: 'ALLOW' }] }
  const lines = [linesOf(whole)[0] ?? '', JSON.stringify({ type: 'configuration', publication: 1, revision, body })]
  const { status } = await send(attacker, lines)
  assert.equal(status, 400)
  for (const { environmentId } of [attacker, victim]) assert.deepEqual((await served(environmentId)).policies, [])
})

test('an import of deployments is served like the publication that made them', async () => {
  const elsewhere = await startService()
  const target = { service: elsewhere, environmentId: elsewhere.environmentId }
  await restore(target, requestsOf(whole))
  const { body: config } = await elsewhere.api<RuntimeConfig>('/runtime-config')
  await elsewhere.close()
  assert.deepEqual(config, await served(source.environmentId))
  const [last = {}] = ofType(whole, 'deploymentChange').toReversed()
  assert.equal(config.revision, last['revision'])
})

test('whatever is imported, the revision is the digest of what is served', { timeout: 900_000 }, async () => {
  const lines = linesOf(whole)
    .slice(1)
    .filter((line) => /"type":"(prompt|policy|deployment)/.test(line))
  const change = fc.record({
    of: fc.nat(lines.length - 1),
    member: fc.constantFrom(
      'version',
      'number',
      'revision',
      'publication',
      'content',
      'condition',
      'name',
      'itemId',
      'none',
    ),
    value: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.constantFrom('true', 'x', '0'.repeat(64))),
  })
  await fc.assert(
    fc.asyncProperty(fc.shuffledSubarray(lines), fc.array(change, { maxLength: 3 }), async (some, changes) => {
      const target = await newTenant()
      const changed = changes.map(({ of, member, value }) =>
        JSON.stringify({ ...(JSON.parse(lines[of] ?? '{}') as object), [member]: value }),
      )
      const sent = [...some, ...changed]
      const head = linesOf(whole)[0] ?? ''
      await send(target, [head])
      // Some of these requests are refused; the rows of earlier requests stay.
      for (let at = 0; at < sent.length; at += 3) await send(target, [head, ...sent.slice(at, at + 3)], true)
      const { prompts, policies } = await served(target.environmentId)
      const deployed = await service.operator<{ items: { id: string }[] }>(
        `/environments/${target.environmentId}/deployments`,
      )
      const ids = [...prompts.map(({ promptId }) => promptId), ...policies.map(({ policyId }) => policyId)]
      assert.deepEqual(new Set(ids), new Set(deployed.body.items.map(({ id }) => id)))
    }),
    { numRuns: 25 },
  )
})
