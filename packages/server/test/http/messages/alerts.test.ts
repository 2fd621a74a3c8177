/** Alerts and budgets from a rule to the message of a webhook. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually } from '../../setup/eventually.ts'
import { event, startService, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf, UNKNOWN_ID } from '../web/contract.ts'

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
    { name: 'errors', kind: 'error_rate', threshold: 99, leastRuns: 1 },
    // Without `leastRuns`, the rule needs five runs: one failed run of one does not count as 100 percent.
    { name: 'few', kind: 'error_rate', threshold: 99 },
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
    ['few', 'OK', null, 0],
    ['cost', 'FIRING', 4, 0],
    ['budget', 'OK', 4, 80],
    ['runs', 'OK', 1, 0],
    ['waiting', 'OK', 0, 0],
    ['stalled', 'OK', 0, 0],
  ])
  const { items } = replyOf('listDeliveries', await service.operator(at(`webhooks/${hook.body.id}/deliveries`)))
  assert.deepEqual(items.map(({ type }) => type).toSorted(), ['alert.firing', 'alert.firing', 'budget.reached'])
})

test('a comparison with last week is in percent, of whole hours, and needs enough runs on both sides', async (t) => {
  const { environmentId } = await service.newTenant('alerts against last week')
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  const place = (path: string) => `/environments/${environmentId}/${path}`
  const hour = 3_600_000
  const lastHour = Math.floor(Date.now() / hour) * hour - hour / 2
  const runsAt = (timestamp: number, name: string, failed: number, cost: number) =>
    Array.from({ length: 6 }, (_, at) => [
      event({ runId: `${name}-${at}`, timestamp, eventType: 'LLM_CALL', payload: { cost } }),
      event({
        runId: `${name}-${at}`,
        timestamp,
        eventType: 'SESSION_OUTCOME',
        payload: { status: at < failed ? 'FAILED' : 'COMPLETED' },
      }),
    ]).flat()
  await service.record(
    [
      ...runsAt(lastHour, 'now', 6, 3),
      ...runsAt(lastHour - 168 * hour, 'before', 1, 1),
      ...runsAt(Date.now(), 'open', 6, 50),
    ],
    key,
  )
  const rules = [
    { name: 'cost tripled', kind: 'cost', threshold: 200, against: 'last_week' },
    { name: 'failures doubled', kind: 'error_rate', threshold: 150, against: 'last_week' },
    { name: 'too few', kind: 'error_rate', threshold: 0, against: 'last_week', leastRuns: 7 },
    { name: 'nothing then', kind: 'cost', threshold: 0, against: 'last_week', leastRuns: 1, agentId: UNKNOWN_ID },
  ]
  for (const rule of rules) {
    const body = { ...rule, windowMinutes: 60, holdMinutes: 0 }
    replyOf('createAlert', await service.operator(place('alerts'), { body }))
  }
  const items = await eventually(async () => {
    const alerts = replyOf('listAlerts', await service.operator(place('alerts')))
    return alerts.items.every(({ checkedAt }) => checkedAt !== null) ? alerts.items : null
  }, 'every rule is checked')
  if (Date.now() - lastHour > 1.5 * hour) return t.skip('the hour turned while the test ran')
  assert.deepEqual(
    items.map(({ name, status, value }) => [name, status, value]),
    [
      ['cost tripled', 'FIRING', 300],
      ['failures doubled', 'FIRING', 600],
      ['too few', 'OK', null],
      ['nothing then', 'OK', null],
    ],
  )
  const other = { name: 'x', kind: 'no_runs', threshold: 0, against: 'last_week' }
  const refused = await service.operator(place('alerts'), { body: other })
  assert.equal(refused.status, 400)
  assert.match(JSON.stringify(refused.body), /against/)
})

test('failures against last week fire only where the numbers show a difference, and the alert says it in a sentence', async (t) => {
  const hour = 3_600_000
  const lastHour = Math.floor(Date.now() / hour) * hour - hour / 2
  for (const [now, before, ended, status, sentence] of [
    [
      4,
      3,
      30,
      'OK',
      /^No difference in failures that these numbers can show \(p ≈ 1\): This time failed in 4 of 30 ended runs \(13 %, likely 5 to 30 %\), .* would show a difference/,
    ],
    [
      31,
      10,
      100,
      'FIRING',
      /^This time fails more often than the same hours of last week: 31 of 100 ended runs .*p < 0\.001\.$/,
    ],
  ] as const) {
    const { environmentId } = await service.newTenant(`noise of ${ended}`)
    const key = await service.newKey({ scopes: ['events:write'], environmentId })
    const outcomes = (timestamp: number, name: string, failed: number) =>
      Array.from({ length: ended }, (_, at) =>
        event({
          runId: `${name}-${at}`,
          timestamp,
          eventType: 'SESSION_OUTCOME',
          payload: { status: at < failed ? 'FAILED' : 'COMPLETED' },
        }),
      )
    await service.record(outcomes(lastHour, 'now', now), key)
    await service.record(outcomes(lastHour - 168 * hour, 'before', before), key)
    const alerts = `/environments/${environmentId}/alerts`
    const rule = {
      name: 'n',
      kind: 'error_rate',
      threshold: 110,
      against: 'last_week',
      windowMinutes: 60,
      holdMinutes: 0,
    }
    replyOf('createAlert', await service.operator(alerts, { body: rule }))
    const alert = await eventually(async () => {
      const { items } = replyOf('listAlerts', await service.operator(alerts))
      return items[0]?.checkedAt ? items[0] : null
    }, 'the rule is checked')
    if (Date.now() - lastHour > 1.5 * hour) return t.skip('the hour turned while the test ran')
    assert.deepEqual([alert.status, Math.round(alert.value ?? 0)], [status, Math.round((100 * now) / before)])
    assert.match(alert.comparison ?? '', sentence)
  }
})

test('money says that calls without a known cost are left out, in lists and in messages', async () => {
  const { environmentId } = await service.newTenant('alerts of unpriced calls')
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  const place = (path: string) => `/environments/${environmentId}/${path}`
  const hook = { url: 'http://127.0.0.1:9/', events: ['alert.firing', 'budget.reached'] }
  const { body } = await service.operator<{ id: string }>(place('webhooks'), { body: hook })
  const call = (payload: object) => event({ runId: 'r', eventType: 'LLM_CALL', payload: { ...payload } })
  const unpriced = call({ model: 'our-llama', usage: { promptTokens: 10 } })
  await service.record([call({ cost: 2 }), unpriced, call({ model: 'gpt-4o', error: { message: '503' } })], key)
  const rules = [
    { name: 'cost', kind: 'cost', threshold: 1 },
    { name: 'budget', kind: 'budget', threshold: 4 },
    { name: 'runs', kind: 'no_runs', threshold: 0 },
  ]
  for (const rule of rules) {
    replyOf('createAlert', await service.operator(place('alerts'), { body: { ...rule, holdMinutes: 0 } }))
  }
  const items = await eventually(async () => {
    const alerts = replyOf('listAlerts', await service.operator(place('alerts')))
    return alerts.items.every(({ checkedAt }) => checkedAt !== null) ? alerts.items : null
  }, 'every rule is checked')
  assert.deepEqual(
    items.map(({ value, unpricedCalls }) => [value, unpricedCalls]),
    [
      [2, 2],
      [2, 2],
      [1, 0],
    ],
  )
  const sent = replyOf('listDeliveries', await service.operator(place(`webhooks/${body.id}/deliveries`)))
  assert.deepEqual(sent.items.map(({ type }) => type).toSorted(), ['alert.firing', 'budget.reached'])
})

test('a rule is checked, and a removed one is gone', async () => {
  const rule = { name: 'x', kind: 'cost', threshold: 1 }
  for (const wrong of [
    { ...rule, kind: 'mood' },
    { ...rule, threshold: -1 },
    { ...rule, windowMinutes: 4 },
    { ...rule, windowMinutes: 10_081 },
    { ...rule, kind: 'budget', threshold: 0 },
    { ...rule, agentId: 'constructor' },
  ]) {
    assert.deepEqual(refusalOf(await create(wrong)), [400, 'invalid_request'], JSON.stringify(wrong))
  }
  const { id } = replyOf('createAlert', await create(rule))
  for (const wrong of [{}, { kind: 'budget' }, { threshold: null }, { name: '' }, { __proto__: null, toString: 1 }]) {
    assert.equal(
      (await service.operator(at(`alerts/${id}/change`), { body: wrong })).status,
      400,
      JSON.stringify(wrong),
    )
  }
  replyOf('removeAlert', await service.operator(at(`alerts/${id}/remove`), { method: 'POST' }))
  const again = await service.operator(at(`alerts/${id}/remove`), { method: 'POST' })
  assert.deepEqual(refusalOf(again), [404, 'not_found'])
})

/** Waits until the alert is checked again after `since`; null: for its first check. */
function checked(id: string, since: string | null) {
  return eventually(async () => {
    const { items } = replyOf('listAlerts', await service.operator(at('alerts')))
    const alert = items.find((one) => one.id === id)
    return alert?.checkedAt && alert.checkedAt !== since ? alert : null
  }, 'the alert is checked')
}

test('a changed alert is checked again at once; a budget with another amount starts again', async () => {
  const change = async (id: string, body: object) =>
    replyOf('changeAlert', await service.operator(at(`alerts/${id}/change`), { body }))
  await service.record([event({ eventType: 'LLM_CALL', payload: { cost: 2 } })])
  const made = replyOf('createAlert', await create({ name: 'c', kind: 'cost', threshold: 1e6, holdMinutes: 0 }))
  const before = await checked(made.id, null)
  assert.equal(before.status, 'OK')
  const { threshold, kind, name, agentId } = await change(made.id, { threshold: 1, name: 'Cost' })
  assert.deepEqual([threshold, kind, name, agentId], [1, 'cost', 'Cost', null])
  assert.equal((await checked(made.id, before.checkedAt)).status, 'FIRING')

  const { id } = replyOf('createAlert', await create({ name: 'b', kind: 'budget', threshold: 0.01 }))
  const told = await checked(id, null)
  assert.equal(told.percentTold, 100)
  assert.equal((await change(id, { name: 'Budget' })).percentTold, 100)
  assert.deepEqual(refusalOf(await service.operator(at(`alerts/${id}/change`), { body: { threshold: 0 } })), [
    400,
    'invalid_request',
  ])
  assert.equal((await change(id, { threshold: 1e6 })).percentTold, 0)
  const unknown = await service.operator(at(`alerts/${UNKNOWN_ID}/change`), { body: { threshold: 2 } })
  assert.deepEqual(refusalOf(unknown), [404, 'not_found'])
})

test('a test message goes to the webhooks that subscribe, and changes nothing', async () => {
  const { environmentId } = await service.newTenant('alert test')
  const place = (path: string) => `/environments/${environmentId}/${path}`
  const { id } = replyOf(
    'createAlert',
    await service.operator(place('alerts'), { body: { name: 'x', kind: 'no_runs', threshold: 0 } }),
  )
  const send = async () =>
    replyOf('testAlert', await service.operator(place(`alerts/${id}/test`), { method: 'POST' })).webhooks
  assert.equal(await send(), 0)
  const hook = async (events: string[]) =>
    (await service.operator<{ id: string }>(place('webhooks'), { body: { url: 'http://127.0.0.1:9/', events } })).body
      .id
  const [listening] = [await hook(['alert.firing']), await hook(['issue.opened'])]
  assert.equal(await send(), 1)
  const { items } = replyOf('listDeliveries', await service.operator(place(`webhooks/${listening}/deliveries`)))
  assert.deepEqual(
    items.map(({ type }) => type),
    ['alert.firing'],
  )
  const list = replyOf('listAlerts', await service.operator(place('alerts')))
  assert.notEqual(list.items[0]?.status, 'FIRING')
  // The alert of another environment.
  assert.equal((await service.operator(at(`alerts/${id}/test`), { method: 'POST' })).status, 404)
})

test('waiting requests of one agent are measured by its external id', async () => {
  const { environmentId } = await service.newTenant('alert agents')
  const place = (path: string) => `/environments/${environmentId}/${path}`
  const key = await service.newKey({ scopes: ['events:write', 'policies:read'], environmentId })
  await service.record(
    [
      event({ runId: 'a', agentId: 'waits' }),
      event({ runId: 'b', agentId: 'works' }),
      event({ runId: 'c', agentId: null, agentName: 'n' }),
    ],
    key,
  )
  const headers = { 'x-api-key': key, 'x-service-client-id': 'c' }
  const asked = { clientRequestId: 'w', toolName: 'pay', inputHash: 'ab'.repeat(32), agentId: 'waits' }
  assert.equal((await service.api('/firewall-approvals', { body: asked, headers })).status, 201)
  const { items } = replyOf('listOperatorRuns', await service.operator(place('runs')))
  const values = new Map<string, boolean>()
  for (const { runId, agent } of items) {
    const body = { name: runId, kind: 'approval_waiting', threshold: 0, holdMinutes: 0, agentId: agent.id }
    replyOf('createAlert', await service.operator(place('alerts'), { body }))
  }
  await eventually(async () => {
    for (const alert of replyOf('listAlerts', await service.operator(place('alerts'))).items) {
      if (alert.checkedAt !== null) values.set(alert.name, (alert.value ?? 0) > 0)
    }
    return values.size === 3
  }, 'every alert is checked')
  assert.deepEqual(Object.fromEntries(values), { a: true, b: false, c: false })
})

test('an alert of an archived environment is not checked', async () => {
  const { environmentId } = await service.newTenant('archived')
  const place = `/environments/${environmentId}`
  assert.equal((await service.operator(`${place}/archive`, { method: 'POST' })).status, 200)
  const rule = { kind: 'no_runs', threshold: 60, windowMinutes: 60, holdMinutes: 0 }
  replyOf('createAlert', await service.operator(`${place}/alerts`, { body: { ...rule, name: 'archived' } }))
  replyOf('createAlert', await create({ ...rule, name: 'in use' }))
  const alerts = async (list: string) => replyOf('listAlerts', await service.operator(list)).items
  // The alert of the archived environment would be checked before this one.
  await eventually(async () => {
    const used = (await alerts(at('alerts'))).find(({ name }) => name === 'in use')
    return used?.checkedAt ? used : null
  }, 'the other alert is checked')
  assert.deepEqual(
    (await alerts(`${place}/alerts`)).map(({ name, checkedAt }) => [name, checkedAt]),
    [['archived', null]],
  )
})

test('an alert ends the share of a version that fails, tells webhooks why, and leaves other shares', async () => {
  const { workspaceId, environmentId } = await service.newTenant('shares')
  const key = await service.newKey({ scopes: ['events:write', 'config:read', 'policies:read'], environmentId })
  const of = (place: string) => `/environments/${environmentId}/${place}`
  const newPrompt = async (name: string) => {
    const path = `/workspaces/${workspaceId}/prompts`
    const prompt = replyOf('createPrompt', await service.operator(path, { body: { name, content: 'one' } }))
    const versions = `${path}/${prompt.promptId}/versions`
    const second = replyOf('createPromptVersion', await service.operator(versions, { body: { content: 'two' } }))
    return { id: prompt.promptId, one: prompt.newest.versionId, two: second.versionId }
  }
  const [failing, fine] = [await newPrompt('failing'), await newPrompt('fine')]
  const deploy = async (version: string, share?: number) => {
    const items = [failing, fine].map(({ id }) => ({ kind: 'prompt', id, version, share }))
    return replyOf('deploy', await service.operator(of('deployments'), { body: { items } }))
  }
  await deploy('1')
  await deploy('2', 30)
  await service.operator(of('webhooks'), { body: { url: 'http://127.0.0.1:9/', events: ['alert.firing'] } })
  const rule = { name: 'New prompts', kind: 'share_failures', threshold: 50 }
  const alert = replyOf('createAlert', await service.operator(of('alerts'), { body: rule }))
  assert.deepEqual([alert.holdMinutes, alert.leastRuns], [0, 5])
  let runs = 0
  const record = async (promptVersionId: string, status: string, count: number) => {
    const timestamp = Date.now()
    const events = Array.from({ length: count }, () => `run ${++runs}`).flatMap((runId) => [
      event({ runId, eventId: 'a', eventType: 'LLM_CALL', payload: { promptVersionId }, timestamp }),
      event({ runId, eventId: 'b', eventType: 'SESSION_OUTCOME', payload: { status }, timestamp }),
    ])
    await service.record(events, key)
  }
  const shares = async () => {
    const { items } = replyOf('listDeployments', await service.operator(of('deployments')))
    return Object.fromEntries(items.map(({ name, share }) => [name, share && share.percent]))
  }
  const checked = async () => {
    const before = Date.now()
    await service.operator(of(`alerts/${alert.id}/change`), { body: { threshold: 50 } })
    return eventually(async () => {
      const [row] = replyOf('listAlerts', await service.operator(of('alerts'))).items
      return row && Date.parse(row.checkedAt ?? '') >= before ? row : null
    }, 'the alert is checked')
  }
  await record(failing.one, 'COMPLETED', 10)
  await record(failing.two, 'FAILED', 4)
  await record(fine.two, 'COMPLETED', 6)
  assert.equal((await checked()).value, 0, 'four runs are too few')
  await record(failing.two, 'FAILED', 1)
  const fired = await checked()
  assert.deepEqual([fired.status, fired.value], ['FIRING', 100])
  assert.match(
    fired.comparison ?? '',
    /^Version 2 of failing, for 30 % of the sessions: 5 of 5 ended runs \(100 %.* failed\. Version 2 of failing fails more often than version 1:/,
  )
  await eventually(async () => (await shares())['failing'] === null, 'the share ends')
  assert.deepEqual(await shares(), { failing: null, fine: 30 })
  // The process serves the job's publication once it has polled the revision again.
  await eventually(async () => {
    const headers = { 'x-api-key': key }
    const config = await service.api<{ prompts: { name: string; version: string; share?: object }[] }>(
      '/runtime-config',
      { headers },
    )
    const [first] = config.body.prompts
    assert.deepEqual([first?.name, first?.version], ['failing', '1'])
    return first?.share === undefined
  }, 'clients get the version that stays')
  const log = replyOf(
    'listAudit',
    await service.operator(`/workspaces/${workspaceId}/audit?targetId=${failing.id}`),
  ).items
  assert.deepEqual(
    [log[0]?.action, log[0]?.actor, log[0]?.address],
    ['prompt.end_share', { kind: 'alert', id: alert.id, name: 'New prompts' }, null],
  )
  const [change] = replyOf('listDeploymentChanges', await service.operator(of('deployments/changes'))).items
  assert.deepEqual([change?.by, change?.share], ['alert New prompts', { version: '2', percent: 0 }])
  assert.match(change?.note ?? '', /^Ended by the alert New prompts: Version 2 of failing/)

  // The alert still fires, but it does not end a new share of the version, which has no runs yet.
  const item = { kind: 'prompt', id: failing.id, version: '2', share: 10 }
  await service.operator(of('deployments'), { body: { items: [item] } })
  await checked()
  assert.deepEqual(await shares(), { failing: 10, fine: 30 })
})
