import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { event, startService, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf } from './contract.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const HOUR = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 2 * HOUR_MS
const iso = (time: number) => new Date(time).toISOString()

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
const window = (from: number, to: number) => `from=${iso(from)}&to=${iso(to)}`

test('usage is summed by hour, agent and model; the hours of both ends are included', async () => {
  const { items } = replyOf('readUsage', await usage(window(HOUR + 1, HOUR + HOUR_MS - 1)))
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

test('the ends of a window are in order, at most 31 days apart', async () => {
  replyOf('readUsage', await usage(window(HOUR - 31 * DAY_MS, HOUR)))
  const refused = [
    window(HOUR - 31 * DAY_MS - 1, HOUR),
    window(HOUR, HOUR - 1),
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
    // A cursor of another window.
    if (pages === 0)
      assert.deepEqual(refusalOf(await usage(`${window(HOUR, HOUR + 2 * HOUR_MS)}${cursor}`)), [400, 'invalid_cursor'])
  }
  assert.deepEqual(found, all.items)
  assert.equal((await usage(`${window(HOUR, HOUR)}&limit=200`)).status, 200)
  assert.equal((await usage(`${window(HOUR, HOUR)}&limit=201`)).status, 400)
})
