/** Runs with missing events: found, told by an alert and by a webhook. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import type { OperatorRun } from '@tacho/contract/operator/run.ts'
import { eventually } from '../../setup/eventually.ts'
import { event, startService, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf } from './contract.ts'

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
  // None of them is a number.
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
