/** Alerts and budgets from a rule to the message of a webhook. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually } from '../../setup/eventually.ts'
import { event, startService, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf, UNKNOWN_ID } from './contract.ts'

let service: Service
before(async () => {
  service = await startService({ webhookNetworks: '127.0.0.0/8' })
})
after(() => service.close())

const at = (place: string) => `/environments/${service.environmentId}/${place}`
const create = (body: object) => service.operator(at('alerts'), { body })

test('every kind is measured from what was recorded, and tells webhooks once', async () => {
  const hook = await service.operator<{ id: string }>(at('webhooks'), {
    body: { url: 'http://127.0.0.1:9/', events: ['alert.firing', 'budget.reached'] },
  })
  assert.equal(hook.status, 201)
  const call = event({
    runId: 'failed',
    eventType: 'LLM_CALL',
    payload: { model: 'gpt-4o', usage: { promptTokens: 1_000_000 } },
  })
  const paid = event({ runId: 'failed', eventType: 'LLM_CALL', payload: { cost: 1.5 } })
  const failed = event({ runId: 'failed', eventType: 'SESSION_OUTCOME', payload: { status: 'FAILED' } })
  await service.record([call, paid, failed])
  const rules = [
    { name: 'errors', kind: 'error_rate', threshold: 99 },
    { name: 'cost', kind: 'cost', threshold: 3.99 },
    { name: 'budget', kind: 'budget', threshold: 5 },
    { name: 'runs', kind: 'no_runs', threshold: 0 },
    { name: 'waiting', kind: 'approval_waiting', threshold: 0 },
    { name: 'stalled', kind: 'stalled_runs', threshold: 0 },
  ]
  for (const rule of rules) replyOf('createAlert', await create({ ...rule, holdMinutes: 0 }))
  const checked = await eventually(async () => {
    const { items } = replyOf('listAlerts', await service.operator(at('alerts')))
    return items.every(({ checkedAt }) => checkedAt !== null) ? items : null
  }, 'every rule is checked')
  const seen = checked.map(({ name, status, value, percentTold }) => [name, status, value, percentTold])
  assert.deepEqual(seen, [
    ['errors', 'FIRING', 100, 0],
    ['cost', 'FIRING', 4, 0],
    ['budget', 'OK', 4, 80],
    ['runs', 'OK', 1, 0],
    ['waiting', 'OK', 0, 0],
    ['stalled', 'OK', 0, 0],
  ])
  const { items } = replyOf('listDeliveries', await service.operator(at(`webhooks/${hook.body.id}/deliveries`)))
  assert.deepEqual(items.map(({ type }) => type).toSorted(), ['alert.firing', 'alert.firing', 'budget.reached'])
})

test('a rule is checked, and a removed one is gone', async () => {
  const rule = { name: 'x', kind: 'cost', threshold: 1 }
  for (const wrong of [
    { ...rule, kind: 'mood' },
    { ...rule, threshold: -1 },
    { ...rule, windowMinutes: 4 },
    { ...rule, windowMinutes: 10_081 },
    { ...rule, kind: 'budget', threshold: 0 },
    { ...rule, kind: 'approval_waiting', agentId: UNKNOWN_ID },
  ]) {
    assert.deepEqual(refusalOf(await create(wrong)), [400, 'invalid_request'], JSON.stringify(wrong))
  }
  const { id } = replyOf('createAlert', await create(rule))
  replyOf('removeAlert', await service.operator(at(`alerts/${id}/remove`), { method: 'POST' }))
  const again = await service.operator(at(`alerts/${id}/remove`), { method: 'POST' })
  assert.deepEqual(refusalOf(again), [404, 'not_found'])
})
