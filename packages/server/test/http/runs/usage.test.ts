import assert from 'node:assert/strict'
import { startOfDay } from '@tacho/contract/engine/days.ts'
import { after, before, test } from 'node:test'
import { event, startService, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf } from '../web/contract.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** The start of an hour two or three hours ago, which is on the same day in UTC as the next hour. */
const HOUR = firstOfTwoHours(Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 2 * HOUR_MS)
const iso = (time: number) => new Date(time).toISOString()

function firstOfTwoHours(hour: number) {
  return hour % DAY_MS === DAY_MS - HOUR_MS ? hour - HOUR_MS : hour
}

let service: Service
before(async () => {
  service = await startService()
  const call = (timestamp: number, promptTokens: number) =>
    event({
      timestamp,
      eventType: 'LLM_CALL',
      payload: { model: 'm', cost: 0.25, usage: { promptTokens, completionTokens: 1 } },
    })
  await service.record([
    call(HOUR, 10),
    call(HOUR + HOUR_MS - 1, 20),
    call(HOUR + HOUR_MS, 40),
    event({ timestamp: HOUR }),
  ])
})
after(() => service.close())

const usage = (query: string) => service.operator(`/environments/${service.environmentId}/usage?${query}`)
/** `last`: in the last hour of the window. */
const window = (from: number, last: number) => `from=${iso(from)}&to=${iso(last + HOUR_MS - (last % HOUR_MS))}`

test('usage is summed by hour, agent and model', async () => {
  const { items } = replyOf('readUsage', await usage(window(HOUR, HOUR + HOUR_MS - 1)))
  assert.deepEqual(
    items.map(({ hour, model, events, usage: sums }) => ({ hour, model, events, ...sums })),
    [
      { hour: iso(HOUR), model: '', events: 1, promptTokens: 0, completionTokens: 0, totalTokens: 0, cost: 0 },
      { hour: iso(HOUR), model: 'm', events: 2, promptTokens: 30, completionTokens: 2, totalTokens: 32, cost: 0.5 },
    ],
  )
  assert.equal(replyOf('readUsage', await usage(window(HOUR, HOUR + HOUR_MS))).items.length, 3)
  assert.deepEqual(replyOf('readUsage', await usage(window(HOUR - DAY_MS, HOUR - 1))).items, [])
})

test('a window that begins or ends inside of an hour counts what is inside of it, to the millisecond', async () => {
  const read = async (from: number, to: number) => {
    const { items } = replyOf('readUsage', await usage(`from=${iso(from)}&to=${iso(to)}`))
    return items.map(({ hour, model, events, usage: { promptTokens } }) => [hour, model, events, promptTokens])
  }
  assert.deepEqual(await read(HOUR + 1, HOUR + HOUR_MS), [[iso(HOUR + 1), 'm', 1, 20]])
  assert.deepEqual(await read(HOUR, HOUR + HOUR_MS - 1), [
    [iso(HOUR), '', 1, 0],
    [iso(HOUR), 'm', 1, 10],
  ])
  assert.deepEqual(await read(HOUR + HOUR_MS - 1, HOUR + HOUR_MS + 1), [
    [iso(HOUR + HOUR_MS - 1), 'm', 1, 20],
    [iso(HOUR + HOUR_MS), 'm', 1, 40],
  ])
  assert.deepEqual(await read(HOUR + 1, HOUR + 1), [])
})

test('days of a zone whose midnight is inside of an hour add up to the days of any other zone', async () => {
  const { environmentId } = await service.newTenant('half hours')
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  const noon = startOfDay(Date.now(), 'UTC') - 2 * DAY_MS + 12 * HOUR_MS
  const runs = Array.from({ length: 96 }, (_, quarter) => noon + (quarter * HOUR_MS) / 4)
  await service.record(
    runs.map((timestamp, run) =>
      event({ runId: `run ${run}`, timestamp, eventType: 'LLM_CALL', payload: { cost: 1 } }),
    ),
    key,
  )
  for (const zone of ['Asia/Kolkata', 'Asia/Kathmandu', 'Australia/Adelaide', 'UTC', 'America/New_York']) {
    const query = `from=${iso(noon)}&to=${iso(noon + DAY_MS)}&by=agent&step=day&zone=${encodeURIComponent(zone)}`
    const answer = await service.operator(`/environments/${environmentId}/usage/points?${query}`)
    const days = replyOf('readUsagePoints', answer).items.map((point) => [point.from, point.runs, point.usage.cost])
    const midnight = startOfDay(noon + DAY_MS - 1, zone)
    const before = runs.filter((time) => time < midnight).length
    const expected = [
      [iso(noon), before, before],
      [iso(midnight), 96 - before, 96 - before],
    ]
    assert.deepEqual(days, expected, zone)
  }
})

test('the ends of a window are in order, at most 31 days apart', async () => {
  replyOf('readUsage', await usage(`from=${iso(HOUR - 31 * DAY_MS)}&to=${iso(HOUR)}`))
  const refused = [
    `from=${iso(HOUR - 31 * DAY_MS - 1)}&to=${iso(HOUR)}`,
    `from=${iso(HOUR)}&to=${iso(HOUR - 1)}`,
    `from=${iso(HOUR)}`,
    `to=${iso(HOUR)}`,
    `from=x&to=${iso(HOUR)}`,
    `from=${iso(HOUR)}&to=`,
    '',
  ]
  for (const query of refused) assert.deepEqual(refusalOf(await usage(query)), [400, 'invalid_request'], query)
})

test('a page ends at its limit, and its cursor continues with the next hour, agent and model', async () => {
  const all = replyOf('readUsage', await usage(window(HOUR, HOUR + HOUR_MS)))
  const found: unknown[] = []
  let cursor = ''
  for (let pages = 0; pages < 3; pages++) {
    const page = replyOf('readUsage', await usage(`${window(HOUR, HOUR + HOUR_MS)}&limit=1${cursor}`))
    assert.equal(page.items.length, 1)
    assert.equal(page.nextCursor === null, pages === 2)
    found.push(...page.items)
    cursor = `&cursor=${page.nextCursor}`
    // A cursor is refused with another window.
    if (pages === 0)
      assert.deepEqual(refusalOf(await usage(`${window(HOUR, HOUR + 2 * HOUR_MS)}${cursor}`)), [400, 'invalid_cursor'])
  }
  assert.deepEqual(found, all.items)
  assert.equal((await usage(`${window(HOUR, HOUR)}&limit=200`)).status, 200)
  assert.equal((await usage(`${window(HOUR, HOUR)}&limit=201`)).status, 400)
})

test('points have runs by outcome, tokens, cost and latency, by agent, model and prompt version', async () => {
  const { environmentId } = await service.newTenant('points')
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  const promptVersionId = '0f9e6c1d-2a4e-4333-8333-5b0f9e6c1d2a'
  const call = { model: 'm', latency: 100, cost: 0.25, usage: { promptTokens: 3 }, promptVersionId }
  const tool = { toolName: 't', latency: 'soon' }
  const sent = [
    event({ eventId: '1', timestamp: HOUR, eventType: 'LLM_CALL', payload: call }),
    event({ eventId: '2', timestamp: HOUR + HOUR_MS, eventType: 'TOOL_CALL', payload: tool }),
    event({ eventId: '3', timestamp: HOUR + HOUR_MS, eventType: 'SESSION_OUTCOME', payload: { status: 'FAILED' } }),
  ]
  for (let n = 0; n < 2; n++) await service.record(sent, key)
  const path = `/environments/${environmentId}/usage/points`
  const read = async (by: string, step: string) => {
    const answer = await service.operator(`${path}?${window(HOUR, HOUR + HOUR_MS)}&by=${by}&step=${step}`)
    return replyOf('readUsagePoints', answer).items
  }
  const sums = { promptTokens: 3, completionTokens: 0, totalTokens: 3, cost: 0.25 }
  const run = { runs: 1, completed: 0, failed: 1, cancelled: 0 }
  const noRun = { runs: 0, completed: 0, failed: 0, cancelled: 0 }
  const [first, second, ...none] = await read('agent', 'hour')
  const llmLatency = { calls: 1, p50Ms: 99.39, p95Ms: 99.39, isApproximate: false }
  assert.deepEqual(first, { ...first, from: iso(HOUR), events: 1, ...run, usage: sums, llmLatency, toolLatency: null })
  assert.deepEqual(second, { ...second, from: iso(HOUR + HOUR_MS), events: 2, ...noRun, llmLatency: null })
  assert.equal(none.length, 0)
  const [day] = await read('agent', 'day')
  assert.deepEqual(day, { ...first, events: 3 })
  const runs = { calls: 1, p50Ms: HOUR_MS, p95Ms: HOUR_MS, isApproximate: false }
  assert.deepEqual(await read('agent', 'window'), [{ ...day, waiting: { runs, approvals: null } }])
  const byModel = (await read('model', 'day')).map(({ name, events, usage: { cost } }) => [name, events, cost])
  assert.deepEqual(byModel, [
    ['', 2, 0],
    ['m', 1, 0.25],
  ])
  const [version] = await read('promptVersion', 'hour')
  assert.deepEqual([version?.key, version?.name, version?.failed], [promptVersionId, null, 1])
  const refused = [
    `${window(HOUR, HOUR + 400 * HOUR_MS)}&by=agent&step=hour`,
    `from=${iso(HOUR)}&to=${iso(HOUR - 1)}&by=agent&step=hour`,
    `${window(HOUR, HOUR)}&by=agent&step=day&zone=Mars/Base`,
    `${window(HOUR, HOUR)}&by=agent&step=day&zone=${'x'.repeat(65)}`,
    `${window(HOUR, HOUR)}&by=color&step=hour`,
    `${window(HOUR, HOUR)}&by=agent&step=week`,
    `${window(HOUR, HOUR)}&by=agent&step=hour&limit=2001`,
  ]
  for (const query of refused) {
    assert.deepEqual(refusalOf(await service.operator(`${path}?${query}`)), [400, 'invalid_request'], query)
  }
  const most = `${window(HOUR, HOUR + 399 * HOUR_MS)}&by=agent&step=hour&limit=2000`
  assert.equal(replyOf('readUsagePoints', await service.operator(`${path}?${most}`)).items.length, 2)
})

test('points by tool have calls, failures and latencies; by session they have runs and cost, the greatest first', async () => {
  const { environmentId } = await service.newTenant('tools and sessions')
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  const of = (runId: string, eventType: string, payload: object) =>
    event({ runId, sessionId: `session ${runId}`, timestamp: HOUR, eventType, payload })
  const sent = [
    of('1', 'TOOL_CALL', { toolName: 'pay', latency: 100 }),
    of('1', 'TOOL_CALL', { toolName: 'pay', error: { message: 'refused' } }),
    of('1', 'POLICY_DECISION', { toolName: 'pay', action: 'BLOCK' }),
    of('1', 'POLICY_DECISION', { toolName: 'pay', action: 'REQUIRE_APPROVAL' }),
    of('1', 'POLICY_DECISION', { toolName: 'pay', action: 'ALLOW' }),
    of('2', 'TOOL_CALL', { toolName: 'x'.repeat(256) }),
    of('2', 'TOOL_CALL', { toolName: ['pay'] }),
    of('1', 'LLM_CALL', { cost: 0.25 }),
    of('2', 'LLM_CALL', { cost: 0.5 }),
    of('3', 'LLM_CALL', { model: 'gpt-4o', usage: { promptTokens: 1_000_000 } }),
    of('3', 'SESSION_OUTCOME', { status: 'FAILED' }),
  ]
  await service.record(sent, key)
  const path = `/environments/${environmentId}/usage/points?${window(HOUR, HOUR)}&step=window`
  const read = async (query: string) => replyOf('readUsagePoints', await service.operator(path + query))
  const tools = (await read('&by=tool')).items.map(({ name, events, runs, calls, toolLatency }) => {
    return [name, events, runs, calls, toolLatency?.calls]
  })
  assert.deepEqual(tools, [
    ['', 2, 0, { failed: 0, blocked: 0, approvals: 0 }, undefined],
    ['pay', 2, 0, { failed: 1, blocked: 1, approvals: 1 }, 1],
  ])
  const byTool = (await read('&by=tool&sort=failed')).items.map(({ name }) => name)
  assert.deepEqual(byTool, ['pay', ''])
  const sessions: unknown[] = []
  for (let cursor = '', pages = 0; pages < 3; pages++) {
    const { items, nextCursor } = await read(`&by=session&sort=cost&limit=1${cursor}`)
    for (const { name, usage: sums, estimatedCost, failed, calls } of items) {
      sessions.push([name, sums.cost, estimatedCost, failed, calls])
    }
    assert.equal(nextCursor === null, pages === 2)
    cursor = `&cursor=${nextCursor}`
  }
  assert.deepEqual(sessions, [
    ['session 3', 0, 2.5, 1, null],
    ['session 2', 0.5, null, 0, null],
    ['session 1', 0.25, null, 0, null],
  ])
  const hourly = path.replace('step=window', 'step=hour')
  assert.deepEqual(refusalOf(await service.operator(`${hourly}&by=tool&sort=cost`)), [400, 'invalid_request'])
})

test('the end of a window is exclusive, so days and months add up to the whole', async () => {
  const { environmentId } = await service.newTenant('windows')
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  const start = HOUR - 20 * DAY_MS
  // One run in each hour of five days.
  const runs = Array.from({ length: 120 }, (_, hour) =>
    event({ runId: `r${hour}`, timestamp: start + hour * HOUR_MS + 1, eventType: 'LLM_CALL', payload: { cost: 1 } }),
  )
  for (let n = 0; n < runs.length; n += 100) await service.record(runs.slice(n, n + 100), key)
  const read = async (from: number, to: number, rest: string) => {
    const path = `/environments/${environmentId}/usage/points?from=${iso(from)}&to=${iso(to)}&by=agent&${rest}`
    return replyOf('readUsagePoints', await service.operator(path)).items
  }
  const countOf = async (from: number, to: number) =>
    (await read(from, to, 'step=window')).reduce((sum, point) => sum + point.runs, 0)
  const [one, two, three] = await Promise.all(
    [0, 1, 2].map((day) => countOf(start + day * DAY_MS, start + (day + 1) * DAY_MS)),
  )
  assert.deepEqual([one, two, three, await countOf(start, start + 3 * DAY_MS)], [24, 24, 24, 72])
  assert.deepEqual([await countOf(start, start + 1), await countOf(start, start + 2)], [0, 1])
  for (const step of ['hour', 'day', 'month', 'window']) assert.deepEqual(await read(start, start, `step=${step}`), [])
  const hours = `/environments/${environmentId}/usage?from=${iso(start)}&to=${iso(start + DAY_MS)}`
  assert.equal(replyOf('readUsage', await service.operator(hours)).items.length, 24)
  for (const zone of ['UTC', 'America/New_York', 'Asia/Kathmandu', 'Pacific/Auckland']) {
    const days = await read(start, start + 5 * DAY_MS, `step=day&zone=${zone}`)
    assert.equal(
      days.reduce((sum, point) => sum + point.runs, 0),
      120,
      zone,
    )
    for (const { from, runs: ofDay } of days.slice(1, -1)) {
      assert.equal(Date.parse(from), startOfDay(Date.parse(from), zone), zone)
      assert.equal(ofDay, 24, zone)
    }
  }
})

test('months are those of the calendar, page by page, up to 400', async () => {
  const { environmentId } = await service.newTenant('months')
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  const now = new Date()
  const month = Date.UTC(now.getUTCFullYear(), now.getUTCMonth())
  // The last hour of the month before, if it is young enough to be recorded, and this month.
  const times = [Math.max(month - 1, Date.now() - 29 * DAY_MS), Date.now()]
  for (const [index, timestamp] of times.entries()) {
    for (const name of ['a', 'b']) {
      const sent = event({
        runId: `${name} ${index}`,
        agentId: name,
        timestamp,
        eventType: 'LLM_CALL',
        payload: { cost: index + 1, latency: 40 },
      })
      assert.equal((await service.record([sent], key)).body.accepted, 1)
    }
  }
  const from = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 2, 10)
  const path = `/environments/${environmentId}/usage/points?${window(from, Date.now())}&by=agent&step=month`
  const points = async (query: string) => replyOf('readUsagePoints', await service.operator(path + query))
  const { items, nextCursor } = await points('')
  assert.equal(nextCursor, null)
  const months = new Set(times.map((time) => iso(time).slice(0, 7)))
  const expected = [...months].flatMap((one) => {
    const cost = times.reduce((sum, time, index) => (iso(time).startsWith(one) ? sum + index + 1 : sum), 0)
    return ['a', 'b'].map(() => [`${one}-01T00:00:00.000Z`, cost])
  })
  assert.deepEqual(
    items.map((point) => [point.from, point.usage.cost]),
    expected,
  )
  const walked: typeof items = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const page = await points(`&limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`)
    walked.push(...page.items)
    cursor = page.nextCursor
  }
  assert.deepEqual(walked, items)
  const long = (count: number) => {
    const start = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - count + 1)
    return service.operator(
      `/environments/${environmentId}/usage/points?${window(start, Date.now())}&by=agent&step=month`,
    )
  }
  assert.equal((await long(400)).status, 200)
  assert.deepEqual(refusalOf(await long(401)), [400, 'invalid_request'])
})

test('by agent, points say how long people waited for runs, and the agent for decisions', async () => {
  const { environmentId } = await service.newTenant('waits')
  const key = await service.newKey({ scopes: ['events:write', 'policies:read'], environmentId })
  // Lengths from 1 to 20 seconds.
  const lengths = Array.from({ length: 20 }, (_, run) => 1_000 * (run + 1))
  const events = lengths.flatMap((ms, run) => {
    const of = { runId: `run ${run}`, agentId: 'slow', agentName: 'slow' }
    const ended = { eventType: 'SESSION_OUTCOME', payload: { status: 'COMPLETED' } }
    return [event({ ...of, timestamp: HOUR + run }), event({ ...of, ...ended, timestamp: HOUR + run + ms })]
  })
  events.push(event({ runId: 'open', agentId: 'slow', agentName: 'slow', timestamp: HOUR }))
  await service.record(events, key)
  const asked = await service.api('/firewall-approvals', {
    headers: { 'x-api-key': key, 'x-service-client-id': 'c' },
    body: { clientRequestId: 'r', toolName: 't', inputHash: 'ab'.repeat(32), agentId: 'slow', timeoutMs: 60_000 },
  })
  assert.equal(asked.status, 201, asked.text)
  const { id } = asked.body as { id: string }
  const decision = { method: 'POST', body: { decision: 'APPROVED' } }
  const decided = await service.operator(`/environments/${environmentId}/approvals/${id}/decision`, decision)
  assert.equal(decided.status, 200, decided.text)
  const { createdAt, decidedAt } = decided.body as { createdAt: string; decidedAt: string }
  const path = `/environments/${environmentId}/usage/points?${window(HOUR, Date.now())}&by=agent&step=`
  const [point] = replyOf('readUsagePoints', await service.operator(`${path}window`)).items
  const waited = Date.parse(decidedAt) - Date.parse(createdAt)
  assert.deepEqual(point?.waiting, {
    runs: { calls: 20, p50Ms: 10_000, p95Ms: 19_000, isApproximate: false },
    approvals: { calls: 1, p50Ms: waited, p95Ms: waited, isApproximate: false },
  })
  assert.equal(replyOf('readUsagePoints', await service.operator(`${path}day`)).items[0]?.waiting ?? null, null)
})
