import assert from 'node:assert/strict'
import { test } from 'node:test'
import { operatorDocument } from '@tacho/contract/web/openapi.ts'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AuditPage } from '@tacho/contract/people/audit.ts'
import type { CreatedOperatorToken } from '@tacho/contract/people/token.ts'
import { createOperatorLimits } from '../../../src/http/people/attempts.ts'
import { startService } from '../../setup/service.ts'

test('a token or session gets exactly its limit, and an address four times as much', () => {
  const limits = createOperatorLimits({ requestsPerSecond: 5, nodes: () => 1 })
  const reply = { header: () => reply } as unknown as FastifyReply
  const from = (ip: string) => limits.byAddress({ ip } as FastifyRequest, reply)
  const granted = (count: number, ask: () => unknown) =>
    Array.from({ length: count }, ask).filter((refusal) => refusal === null).length
  assert.equal(
    granted(6, () => limits.byCaller('token', reply)),
    5,
  )
  assert.equal(
    granted(6, () => limits.byCaller('session', reply)),
    5,
  )
  assert.equal(
    granted(21, () => from('192.0.2.1')),
    20,
  )
  assert.equal(
    granted(21, () => from('192.0.2.2')),
    20,
  )
})

test('a token over its limit gets 429 with Retry-After, and the headers of its limit', async (t) => {
  const service = await startService({ operatorRateLimit: '5' })
  t.after(() => service.close())
  const answers = await Promise.all(Array.from({ length: 60 }, () => service.operator('/me')))
  const refused = answers.filter(({ status }) => status === 429)
  // On a slow machine the requests take several seconds.
  assert.ok(refused.length > 0)
  assert.ok(answers.some(({ status }) => status === 200))
  for (const answer of refused) {
    assert.equal(answer.headers.get('retry-after'), '1')
    // The header shows the limit of the token or that of the address. All requests come from one address.
    assert.match(answer.headers.get('ratelimit-limit') ?? '', /^(5|20)$/)
    assert.equal((answer.body as { code: string }).code, 'rate_limited')
  }
})

test('an address that presents no valid credential is limited, too', async (t) => {
  const service = await startService({ operatorRateLimit: '2' })
  t.after(() => service.close())
  const answers = await Promise.all(Array.from({ length: 80 }, () => service.call('/operator/v1/me')))
  assert.ok(answers.every(({ status }) => status === 401 || status === 429))
  const refused = answers.find(({ status }) => status === 429)
  assert.equal(refused?.headers.get('ratelimit-limit'), '8')
})

test('rejected changes are logged 60 times a minute per caller; further ones get 429 and are not logged', async (t) => {
  const service = await startService()
  t.after(() => service.close())
  const { body: made } = await service.operator<CreatedOperatorToken>('/tokens', {
    body: { name: 'script', role: 'viewer' },
  })
  const headers = { authorization: `Bearer ${made.token}` }
  const statuses: number[] = []
  for (let tries = 0; tries < 61; tries++) {
    statuses.push((await service.operator('/workspaces', { body: { name: 'mine' }, headers })).status)
  }
  assert.deepEqual(new Set(statuses.slice(0, 60)), new Set([403]))
  assert.equal(statuses[60], 429)
  const { body } = await service.operator<AuditPage>('/audit?action=endpoint.call.refused&limit=200')
  assert.equal(body.items.length, 60)
})

test('429 is documented for every endpoint, also for those without a credential', () => {
  const { paths } = operatorDocument('1') as { paths: Record<string, Record<string, { responses: object }>> }
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, { responses }] of Object.entries(methods)) {
      assert.ok(Object.hasOwn(responses, '429'), `${method} ${path}`)
    }
  }
})
