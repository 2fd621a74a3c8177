import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { event, startService, type EventPage, type RunDetail, type RunPage, type Service } from '../../setup/service.ts'

const HOUR = 3_600_000
let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

const runs = async (query = '', key = service.apiKey) =>
  (await service.api<RunPage>(`/runs${query}`, { headers: { 'x-api-key': key } })).body
const detail = async (runId: string) => (await service.api<RunDetail>(`/runs/${encodeURIComponent(runId)}`)).body

async function record(runId: string, ...changes: Record<string, unknown>[]): Promise<void> {
  const { body } = await service.record(changes.map((change) => event({ runId, ...change })))
  assert.equal(body.success, true)
}

/** All items of a list, page by page. */
async function walk<Item>(path: string, limit: number): Promise<Item[]> {
  const items: Item[] = []
  let cursor: string | null = null
  do {
    const query: string = `limit=${limit}${cursor === null ? '' : `&cursor=${cursor}`}`
    const { status, body } = await service.api<{ items: Item[]; nextCursor: string | null }>(`${path}?${query}`)
    assert.equal(status, 200)
    items.push(...body.items)
    cursor = body.nextCursor
  } while (cursor !== null)
  return items
}

test('a run is RUNNING from its first event until its first valid outcome', async () => {
  const now = Date.now()
  await record('life', { timestamp: now - 5000 })
  assert.deepEqual([(await detail('life')).status, (await detail('life')).endedAt], ['RUNNING', null])
  const outcome = (status: unknown, timestamp: number) => ({
    eventType: 'SESSION_OUTCOME',
    payload: { status },
    timestamp,
  })
  await record('life', outcome('DONE', now - 4000))
  assert.equal((await detail('life')).status, 'RUNNING')
  await record('life', outcome('FAILED', now - 3000), outcome('COMPLETED', now - 4500))
  await record('life', { timestamp: now - 9000 }, { timestamp: now })
  const run = await detail('life')
  assert.deepEqual(
    [run.status, run.startedAt, run.endedAt],
    ['FAILED', new Date(now - 9000).toISOString(), new Date(now - 3000).toISOString()],
  )
})

test('a run item has exactly the documented fields, in the list and in the detail', async () => {
  await record('fields', { sessionId: 's', agentId: 'a' })
  const item = (await runs('?limit=100')).items.find(({ runId }) => runId === 'fields')
  const keys = ['agent', 'endedAt', 'id', 'runId', 'startedAt', 'status', 'usage']
  assert.deepEqual(Object.keys(item ?? {}).sort(), keys)
  assert.deepEqual(
    Object.keys(await detail('fields')).sort(),
    [...keys, 'events', 'hasMoreEvents', 'nextCursor'].sort(),
  )
  assert.deepEqual(Object.keys(item?.usage ?? {}), ['promptTokens', 'completionTokens', 'totalTokens', 'cost'])
})

test('a read event has every field that was sent, and an internal id that never changes', async () => {
  const timestamp = Date.now() - 1234
  const sent = event({
    runId: 'read',
    sessionId: 's',
    agentId: 'a',
    timestamp,
    spanId: 'sp',
    parentSpanId: 'pa',
    schemaVersion: '1',
    payload: { text: 'hi' },
  })
  await service.record([sent])
  const [first] = (await detail('read')).events
  const { id, receivedAt, ...rest } = first ?? { id: '', receivedAt: '' }
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-5/)
  assert.ok(Date.parse(receivedAt) >= timestamp)
  assert.deepEqual(rest, { ...sent, timestamp: new Date(timestamp).toISOString() })
  assert.equal((await detail('read')).events[0]?.id, id)
})

test('the timeline is ordered by time, then by arrival', async () => {
  const now = Date.now()
  const times = [3, 1, 2, 1, 3, 1]
  for (const [place, time] of times.entries())
    await record('order', { timestamp: now + time, label: `${time}.${place}` })
  assert.deepEqual(
    (await detail('order')).events.map(({ label }) => label),
    ['1.1', '1.3', '1.5', '2.2', '3.0', '3.4'],
  )
})

test('the run detail has up to 100 events, and its cursor continues on the timeline', async () => {
  const add = (count: number) => record('detail', ...Array.from({ length: count }, () => ({})))
  await add(LIMITS.runDetailEvents)
  assert.deepEqual([(await detail('detail')).hasMoreEvents, (await detail('detail')).nextCursor], [false, null])
  await add(1)
  const { events, hasMoreEvents, nextCursor } = await detail('detail')
  assert.deepEqual([events.length, hasMoreEvents], [100, true])
  const rest = await service.api<EventPage>(`/runs/detail/events?cursor=${nextCursor}`)
  assert.deepEqual([rest.body.items.length, rest.body.nextCursor], [1, null])
  assert.ok(!events.some(({ eventId }) => eventId === rest.body.items[0]?.eventId))
})

test('a page of events has 100 by default, and at most 200', async () => {
  for (let batch = 0; batch < 3; batch++) await record('pages', ...Array.from({ length: 100 }, () => ({})))
  const page = async (query: string) => service.api<EventPage>(`/runs/pages/events${query}`)
  assert.equal((await page('')).body.items.length, 100)
  assert.equal((await page('?limit=200')).body.items.length, 200)
  assert.equal((await page('?limit=201')).status, 400)
  const all = await walk<{ eventId: string }>('/runs/pages/events', 7)
  assert.equal(new Set(all.map(({ eventId }) => eventId)).size, 300)
})

test('a page ends at about 4 MiB, and always has an event', async () => {
  // Texts such as the agent's name count too.
  const payload = { text: 'x'.repeat(LIMITS.payloadBytes - '{"text":""}agent'.length) }
  for (let batch = 0; batch < 6; batch++) await record('heavy', { payload }, { payload }, { payload })
  const page = await service.api<EventPage>('/runs/heavy/events?limit=200')
  assert.equal(page.body.items.length, LIMITS.pageBytes / LIMITS.payloadBytes)
  assert.equal((await walk('/runs/heavy/events', 200)).length, 18)
})

test('runs are listed newest start first, and paging misses none', async () => {
  const base = Date.now() - 48 * HOUR
  for (let index = 0; index < 30; index++) await record(`walk-${index}`, { timestamp: base + (index % 7) * 1000 })
  const all = await walk<{ id: string; runId: string; startedAt: string }>('/runs', 4)
  const sorted = all.toSorted((a, b) => b.startedAt.localeCompare(a.startedAt) || b.id.localeCompare(a.id))
  assert.deepEqual(all, sorted)
  assert.equal(new Set(all.filter(({ runId }) => runId.startsWith('walk-'))).size, 30)
})

test('runs can be filtered by status and by agent', async () => {
  const cancelled = { eventType: 'SESSION_OUTCOME', payload: { status: 'CANCELLED' } }
  await record('filter-1', { agentId: 'filtered', agentName: 'Filter' }, { agentId: 'filtered', ...cancelled })
  await record('filter-2', { agentId: 'filtered', agentName: 'Filter' })
  const [{ agent } = { agent: { id: '', name: '' } }] = (await runs('?status=CANCELLED')).items
  const ids = async (query: string) => (await runs(query)).items.map(({ runId }) => runId).sort()
  assert.deepEqual(await ids('?status=CANCELLED'), ['filter-1'])
  assert.deepEqual(await ids(`?agentId=${agent.id}`), ['filter-1', 'filter-2'])
  assert.deepEqual(await ids(`?agentId=${agent.id.toUpperCase()}&status=RUNNING`), ['filter-2'])
  assert.deepEqual(await ids('?agentId=01900000-0000-7000-8000-000000000000'), [])
})

test('an agent is known by its agentId or else its name, and shown with its newest name by event time', async () => {
  const now = Date.now()
  await record('agent-1', { agentId: 'bot', agentName: 'Old', timestamp: now - 3000 })
  await record('agent-2', { agentId: 'bot', agentName: 'New', timestamp: now - 1000 })
  await record('agent-3', { agentId: 'bot', agentName: 'Late', timestamp: now - 2000 })
  await record('agent-4', { agentName: 'bot' })
  const agents = await Promise.all(
    ['agent-1', 'agent-2', 'agent-3', 'agent-4'].map(async (id) => (await detail(id)).agent),
  )
  assert.deepEqual(
    agents.map(({ name }) => name),
    ['New', 'New', 'New', 'bot'],
  )
  assert.equal(new Set(agents.map(({ id }) => id)).size, 2)
})

test('a path id is first looked up as external id, then as internal UUID', async () => {
  await record('by-id', {})
  const { id } = await detail('by-id')
  assert.equal((await detail(id)).runId, 'by-id')
  assert.equal((await detail(id.toUpperCase())).runId, 'by-id')
  await record(id, {})
  assert.equal((await detail(id)).runId, id)
})

test('a path id may have any character, up to 255 code points', async () => {
  for (const id of ['a/b', 'a b', '100%', 'what?', '#&=+', '%2F', '..', '😀'.repeat(255), "'; --", '\u0001']) {
    await record(id, {})
    const answer = await service.api<RunDetail>(`/runs/${id === '..' ? '%2E%2E' : encodeURIComponent(id)}`)
    if (id === '..') continue // clients resolve it before sending
    assert.deepEqual([answer.status, answer.body.runId], [200, id], id)
    assert.equal((await service.api(`/runs/${encodeURIComponent(id)}/events`)).status, 200, id)
  }
  assert.equal((await service.api(`/runs/${encodeURIComponent('😀'.repeat(256))}`)).status, 404)
  assert.equal((await service.api('/runs/%00')).status, 404)
})

test('invalid query parameters get 400, unknown ones are ignored', async () => {
  for (const query of [
    ...['0', '-1', '101', '1.5', '1e1', '01', '+5', ' 5', 'x', '9'.repeat(30)].map((limit) => `limit=${limit}`),
    'limit=',
    'limit',
    'limit=1&limit=1',
    'status=running',
    'status=',
    'status=FAILED&status=FAILED',
    'agentId=x',
    'agentId=',
    'cursor=',
    'cursor=x',
    'cursor=a.b',
  ]) {
    assert.equal((await service.api(`/runs?${query}`)).status, 400, query)
  }
  for (const query of ['limit=1', 'limit=100', 'unknown=1&unknown=2', 'LIMIT=0', '__proto__=1&constructor=']) {
    assert.equal((await service.api(`/runs?${query}`)).status, 200, query)
  }
})

test('a cursor is valid only for its tenant, list, filter and run, with any limit and spelling', async () => {
  const cursorOf = async (path: string) => {
    const { body } = await service.api<{ nextCursor: string | null }>(path)
    assert.ok(body.nextCursor, path)
    return body.nextCursor
  }
  await record('cursor-1', {}, {}, {})
  await record('cursor-2', {}, {}, {})
  const ofRuns = await cursorOf('/runs?limit=1')
  const ofEvents = await cursorOf('/runs/cursor-1/events?limit=1')
  const status = async (path: string, key = service.apiKey) =>
    (await service.api(path, { headers: { 'x-api-key': key } })).status
  const other = await service.newTenant('cursors')
  const foreign = await service.newKey({ scopes: ['usage:read'], environmentId: other.environmentId })
  const { id } = await detail('cursor-1')
  assert.equal(await status(`/runs?limit=50&cursor=${ofRuns}`), 200)
  assert.equal(await status(`/runs/${id}/events?limit=2&cursor=${ofEvents}`), 200)
  assert.equal(await status(`/runs?status=RUNNING&cursor=${ofRuns}`), 400)
  assert.equal(await status(`/runs?cursor=${ofEvents}`), 400)
  assert.equal(await status(`/runs/cursor-2/events?cursor=${ofEvents}`), 400)
  assert.equal(await status(`/runs?cursor=${ofRuns}`, foreign), 400)
})

test('another tenant cannot see a run, and unknown and foreign ids get the same 404', async () => {
  await record('secret', { agentName: 'secret agent' })
  const other = await service.newTenant('strangers')
  const key = await service.newKey({ scopes: ['usage:read', 'events:write'], environmentId: other.environmentId })
  const { id, agent } = await detail('secret')
  const answers = await Promise.all(
    ['secret', id, 'unknown'].flatMap((run) =>
      ['', '/events'].map((tail) => service.api(`/runs/${run}${tail}`, { headers: { 'x-api-key': key } })),
    ),
  )
  const bodies = answers.map(({ status, text }) => `${status} ${text.replace(/"requestId":"[^"]*"/, '')}`)
  assert.equal(new Set(bodies).size, 1)
  assert.equal(answers[0]?.status, 404)
  assert.deepEqual(await runs('', key), { items: [], nextCursor: null })
  assert.deepEqual((await runs(`?agentId=${agent.id}`, key)).items, [])
  await service.record([event({ runId: 'secret', label: 'of the stranger' })], key)
  assert.equal((await detail('secret')).events.length, 1)
})
