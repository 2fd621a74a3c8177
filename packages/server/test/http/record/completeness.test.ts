/** Runs with missing events, in lists, sums, alerts and webhooks. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { SCOPES } from '@tacho/contract/web/route.ts'
import { eventually } from '../../setup/eventually.ts'
import { event, startService, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf } from '../web/contract.ts'

let service: Service
let hook: Server
const received: { type: string; data: Record<string, unknown> }[] = []
/** The clock of the server is this much ahead. */
let ahead = 0
before(async () => {
  hook = createServer((request, response) => {
    void json(request).then((message) => {
      received.push(message as (typeof received)[number])
      response.end()
    })
  })
  await once(hook.listen(0, '127.0.0.1'), 'listening')
  service = await startService({ webhookNetworks: '127.0.0.0/8' }, () => Date.now() + ahead)
  const { environmentId } = service
  const url = `http://127.0.0.1:${(hook.address() as AddressInfo).port}/`
  const body = { url, events: ['run.incomplete', 'alert.firing'] }
  assert.equal((await service.operator(`/environments/${environmentId}/webhooks`, { body })).status, 201)
})
after(async () => {
  await service.close()
  hook.close()
})

const at = (place: string) => `/environments/${service.environmentId}/${place}`
const runIds = async (query: string) => {
  const { items } = replyOf('listOperatorRuns', await service.operator(at(`runs${query}`)))
  return items.map(({ runId }) => runId).toSorted()
}
const numbered = (runId: string, n: unknown, change: object = {}) => event({ runId, n, ...change })
const OUTCOME = { eventType: 'SESSION_OUTCOME', payload: { status: 'COMPLETED' } }

test('runs with missing events are listed, also of an agent and with a status, and are no others', async () => {
  const dropped = { queue_full: [1, Date.now()], Wrong: [1, 1], negative: [-1, 1], long: [1, 1e300], none: null }
  await service.record([
    numbered('gaps', 'abcde1'),
    numbered('gaps', 'abcde4.', { ...OUTCOME, dropped }),
    numbered('whole', 'abcde1', { agentId: 'other' }),
    numbered('whole', 'abcde2.', { ...OUTCOME, agentId: 'other' }),
    numbered('other', 'abcde3', { agentId: 'other' }),
    event({ runId: 'plain' }),
  ])
  // Invalid event numbers are ignored.
  const wrong = [null, 7, '', 'abcde', 'abcde0', 'ABCDE1', 'abcde-1', 'abcde1..', `abcde${'z'.repeat(8)}`, ['abcde1']]
  await service.record(wrong.map((n) => numbered('wrong', n, { dropped: 'many' })))
  assert.deepEqual(await runIds('?completeness=GAPS'), ['gaps', 'other'])
  assert.deepEqual(await runIds('?completeness=GAPS&agent=other'), ['other'])
  assert.deepEqual(await runIds('?completeness=GAPS&status=COMPLETED'), ['gaps'])
  assert.deepEqual(await runIds('?completeness=GAPS&status=FAILED'), [])
  assert.deepEqual(refusalOf(await service.operator(at('runs?completeness=COMPLETE'))), [400, 'invalid_request'])
  const of = async (runId: string): Promise<OperatorRun['completeness']> =>
    replyOf('readOperatorRun', await service.operator(at(`runs/${runId}`))).completeness
  const { state, recorded, missing, drops } = await of('gaps')
  assert.deepEqual({ state, recorded, missing }, { state: 'GAPS', recorded: 4, missing: 1 })
  assert.deepEqual(
    drops.map(({ reason, count }) => [reason, count]),
    [['queue_full', 1]],
  )
  assert.equal((await of('whole')).state, 'COMPLETE')
  assert.deepEqual([(await of('wrong')).state, (await of('wrong')).unnumbered], ['UNKNOWN', wrong.length])
})

test('a rejected event is told with its run, once, also if nothing else is in its batch', async () => {
  await service.record([numbered('rejected', 'abcde1')])
  const old = numbered('rejected', 'abcde2', { timestamp: 1 })
  for (let attempt = 0; attempt < 2; attempt++) await service.record([old])
  await service.record([numbered('rejected', 'abcde3.', OUTCOME)])
  const { completeness } = replyOf('readOperatorRun', await service.operator(at('runs/rejected')))
  const { state, recorded, rejected, missing } = completeness
  assert.deepEqual({ state, recorded, rejected, missing }, { state: 'GAPS', recorded: 3, rejected: 1, missing: 0 })
})

test('a webhook is told once of a run that still has gaps after a minute, and an alert counts such runs', async () => {
  await service.record([numbered('filled', 'abcde2')])
  await service.record([numbered('filled', 'abcde1')])
  const rule = { name: 'Holes', kind: 'incomplete_runs', threshold: 2, holdMinutes: 0 }
  replyOf('createAlert', await service.operator(at('alerts'), { body: rule }))
  const alert = await eventually(
    async () => received.find(({ type }) => type === 'alert.firing') ?? null,
    'the alert fires',
  )
  assert.equal(alert.data['value'], 3)
  ahead = 61_000
  const told = await eventually(async () => {
    const news = received.filter(({ type }) => type === 'run.incomplete')
    return news.length >= 3 ? news : null
  }, 'the webhook is told')
  const data = told.map((message) => message.data)
  assert.deepEqual(data.map(({ runId }) => String(runId)).toSorted(), ['gaps', 'other', 'rejected'])
  const gaps = data.find(({ runId }) => runId === 'gaps')
  assert.match(
    String(gaps?.['title']),
    /^2 of 4 events are missing: the client dropped 1 at .* because its queue was full, no/,
  )
  assert.deepEqual([gaps?.['runStatus'], gaps?.['recorded'], gaps?.['arrived']], ['COMPLETED', 4, 2])
  assert.ok(!JSON.stringify(data).includes('filled'))
})

const NOW = Date.now()
const sumsOf = async (by: string, more = '', environmentId = service.environmentId) => {
  const [from, to] = [NOW - 3_600_000, NOW + 3_600_000].map((time) => new Date(time).toISOString())
  const path = `/environments/${environmentId}/completeness?from=${from}&to=${to}&by=${by}${more}`
  return replyOf('readCompleteness', await service.operator(path))
}

test('what is missing is summed up by client and by agent, the greatest loss first, with the reasons', async () => {
  const { environmentId } = await service.newTenant('sums')
  const key = await service.newKey({ scopes: [...SCOPES], environmentId })
  const send = async (events: Record<string, unknown>[]) => {
    const answer = await service.api('/events/batch', { body: events, headers: { 'x-api-key': key } })
    assert.equal(answer.status, 200, answer.text)
  }
  const ofClient = (clientId: string, agentId: string) => ({ clientId, agentId, agentName: `Agent ${agentId}` })
  const dropped = { queue_full: [3, NOW], failed: [1, NOW - 9] }
  await send([
    // Names of members of Object.prototype are valid ids.
    numbered('one', 'abcde1', ofClient('__proto__', 'constructor')),
    numbered('one', 'abcde6.', { ...OUTCOME, ...ofClient('__proto__', 'constructor'), dropped }),
    numbered('one', 'worke1.', ofClient('worker', 'constructor')),
    numbered('two', 'abcde3.', { ...OUTCOME, ...ofClient('__proto__', 'other') }),
    numbered('two', 'worke2.', ofClient('worker', 'other')),
    numbered('whole', 'abcde1.', { ...OUTCOME, ...ofClient('perfect', 'perfect') }),
  ])
  const { items, nextCursor, lookedTo } = await sumsOf('client', '', environmentId)
  assert.deepEqual([nextCursor, lookedTo], [null, null])
  const told = items.map(({ key: id, name, runs, recorded, arrived, dropped: said, missing, drops }) => {
    assert.equal(id, name)
    return { id, runs, recorded, arrived, said, missing, why: drops.map(({ reason, count }) => [reason, count]) }
  })
  const why = [
    ['queue_full', 3],
    ['failed', 1],
  ]
  assert.deepEqual(told, [
    { id: '__proto__', runs: 2, recorded: 9, arrived: 3, said: 4, missing: 2, why },
    { id: 'worker', runs: 1, recorded: 2, arrived: 1, said: 0, missing: 1, why: [] },
  ])
  const agents = (await sumsOf('agent', '', environmentId)).items
  assert.deepEqual(
    agents.map(({ name, runs, recorded, arrived, newestRun }) => [name, runs, recorded, arrived, newestRun.runId]),
    [
      ['Agent constructor', 1, 7, 3, 'one'],
      ['Agent other', 1, 5, 2, 'two'],
    ],
  )
  const [first, second] = agents
  const ofAgent = (await sumsOf('client', `&agentId=${second?.key.toUpperCase()}`, environmentId)).items
  assert.deepEqual(
    ofAgent.map(({ key: id, missing }) => [id, missing]),
    [
      ['__proto__', 2],
      ['worker', 1],
    ],
  )
  const page = await sumsOf('agent', '&limit=1', environmentId)
  const next = await sumsOf('agent', `&limit=1&cursor=${encodeURIComponent(page.nextCursor ?? '')}`, environmentId)
  assert.deepEqual([...page.items, ...next.items], agents)
  assert.equal(next.nextCursor, null)
  // An agent of another environment has no runs here.
  assert.deepEqual((await sumsOf('client', `&agentId=${first?.key}`)).items, [])
  const other = await service.operator(
    `/environments/${service.environmentId}/completeness?from=${new Date(NOW).toISOString()}&to=${new Date(NOW + 1).toISOString()}&by=agent&cursor=${encodeURIComponent(page.nextCursor ?? '')}`,
  )
  assert.deepEqual(refusalOf(other), [400, 'invalid_cursor'])
  for (const wrong of ['by=run', 'by=__proto__', 'by=agent&agentId=constructor']) {
    const times = `from=${new Date(NOW).toISOString()}&to=${new Date(NOW + 1).toISOString()}`
    assert.deepEqual(refusalOf(await service.operator(at(`completeness?${times}&${wrong}`))), [400, 'invalid_request'])
  }
})

test('sums look at a bounded number of SDK instances, the newest runs first, and say how far', async () => {
  const { environmentId } = await service.newTenant('many')
  const key = await service.newKey({ scopes: [...SCOPES], environmentId })
  // Each run has 50 SDK instances, its maximum, and each instance lost its first event.
  const runs = Math.ceil(LIMITS.summedRecorders / 50) + 150
  for (let run = 0; run < runs; run += 2) {
    const events = Array.from({ length: 100 }, (_, n) => {
      const recorder = `r${String(n % 50).padStart(4, '0')}`
      const place = {
        runId: `run ${run + (n < 50 ? 0 : 1)}`,
        timestamp: NOW - run * 1_000,
        clientId: `client ${n % 7}`,
      }
      return numbered(place.runId, `${recorder}2`, place)
    })
    const answer = await service.api('/events/batch', { body: events, headers: { 'x-api-key': key } })
    assert.equal(answer.status, 200, answer.text)
  }
  const { items, lookedTo } = await sumsOf('client', '', environmentId)
  assert.equal(items.length, 7)
  assert.equal(
    items.reduce((sum, { missing }) => sum + missing, 0),
    LIMITS.summedRecorders,
  )
  assert.ok(lookedTo !== null && Date.parse(lookedTo) > NOW - runs * 1_000, String(lookedTo))
})
