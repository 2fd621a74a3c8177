import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { EVENT_ORDERS } from '@tacho/contract/runs/operator-run.ts'
import { event, startService, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf } from '../web/contract.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

const timelineOf = (runId: string) => `/environments/${service.environmentId}/runs/${runId}/events`
const rows = async (runId: string, query = '') =>
  replyOf('listEventRows', await service.operator(`${timelineOf(runId)}${query}`))
const idsOf = ({ items }: { items: { eventId: string }[] }) => items.map(({ eventId }) => eventId)
const cursorOf = ({ nextCursor }: { nextCursor: string | null }) => `cursor=${encodeURIComponent(nextCursor ?? '')}`

test('rows come by time, without payloads but with their size and latency', async () => {
  const now = Date.now()
  await service.record([
    event({ runId: 'time', eventId: 'late', timestamp: now, payload: { text: 'é', latency: 52.8 } }),
    event({ runId: 'time', eventId: 'early', timestamp: now - 1000 }),
  ])
  const page = await rows('time')
  assert.deepEqual(idsOf(page), ['early', 'late'])
  assert.equal(page.nextCursor, null)
  assert.deepEqual(
    page.items.map(({ payloadBytes }) => payloadBytes),
    [2, Buffer.byteLength('{"text":"é","latency":52.8}')],
  )
  assert.deepEqual(
    page.items.map(({ latency }) => latency),
    [null, 52.8],
  )
  assert.ok(page.items.every((item) => !('payload' in item)))
})

test('a row of a model call has its tokens and its cost', async () => {
  const call = (payload: Record<string, unknown>) => event({ runId: 'used', eventType: 'LLM_CALL', payload })
  await service.record([
    call({ cost: 0.0042, usage: { promptTokens: 512, completionTokens: 48 } }),
    call({ usage: { promptTokens: 'many' } }),
    event({ runId: 'used', eventType: 'TOOL_CALL', payload: { cost: 1, usage: { totalTokens: 5 } } }),
  ])
  assert.deepEqual(
    (await rows('used', '?order=arrival')).items.map(({ tokens, cost }) => [tokens, cost]),
    [
      [560, 0.0042],
      [null, null],
      [null, null],
    ],
  )
})

test('a run is searched by its payloads, page by page', async () => {
  const start = Date.now() - 60_000
  const steps = Array.from({ length: 30 }, (_, n) =>
    event({
      runId: 'grep',
      eventId: `e${n}`,
      timestamp: start + n,
      payload: { text: n % 10 === 0 ? 'A Needle' : 'hay' },
    }),
  )
  await service.record(steps)
  const address = `/environments/${service.environmentId}/runs/grep/search`
  const read = async (query: string) => replyOf('searchRun', await service.operator(`${address}?${query}`))
  const all = await read('q=needle')
  assert.deepEqual([all.items.map(({ event: { eventId } }) => eventId), all.examined], [['e0', 'e10', 'e20'], 30])
  assert.deepEqual(all.items[0]?.snippet, [
    { text: 'A ', isHit: false },
    { text: 'Needle', isHit: true },
  ])
  assert.ok(all.items.every((item) => !('payload' in item.event)))
  const first = await read('q=needle&limit=2')
  assert.equal((await read(`q=needle&limit=2&${cursorOf(first)}`)).items[0]?.event.eventId, 'e20')
  assert.deepEqual(refusalOf(await service.operator(`${address}?q=hay&${cursorOf(first)}`)), [400, 'invalid_cursor'])
  assert.deepEqual(await read('q=%00'), { items: [], examined: 0, nextCursor: null })
  const longest = 'é'.repeat(LIMITS.searchChars)
  assert.deepEqual((await read(`q=${encodeURIComponent(longest)}`)).items, [])
  for (const query of ['', 'q=', `q=${encodeURIComponent(longest)}x`, `q=a&limit=${LIMITS.searchPageMax + 1}`]) {
    assert.deepEqual(refusalOf(await service.operator(`${address}?${query}`)), [400, 'invalid_request'], query)
  }
  const foreign = await service.newTenant('grep')
  const elsewhere = await service.operator(`/environments/${foreign.environmentId}/runs/grep/search?q=needle`)
  assert.deepEqual(refusalOf(elsewhere), [404, 'not_found'])
})

test('paging by arrival never ends: its cursor returns later events', async () => {
  const now = Date.now()
  await service.record([event({ runId: 'live', eventId: 'a', timestamp: now })])
  const first = await rows('live', '?order=arrival')
  assert.deepEqual(idsOf(first), ['a'])
  const nothing = await rows('live', `?order=arrival&${cursorOf(first)}`)
  assert.deepEqual(nothing.items, [])
  assert.notEqual(nothing.nextCursor, null)
  await service.record([event({ runId: 'live', eventId: 'before a', timestamp: now - 60_000 })])
  const followed = await rows('live', `?order=arrival&${cursorOf(nothing)}`)
  assert.deepEqual(idsOf(followed), ['before a'])
  assert.deepEqual(idsOf(await rows('live')), ['before a', 'a'])
})

test('the steps before one come nearest first, from far into a run, in pages', async () => {
  const start = Date.now() - 60_000
  const steps = Array.from({ length: 300 }, (_, n) =>
    event({ runId: 'before', eventId: `e${n}`, timestamp: start + Math.floor(n / 2) }),
  )
  for (let at = 0; at < steps.length; at += LIMITS.batchEvents)
    await service.record(steps.slice(at, at + LIMITS.batchEvents))
  const first = await rows('before', '?order=latest&before=e40&limit=3')
  assert.deepEqual(idsOf(first), ['e39', 'e38', 'e37'])
  const next = await rows('before', `?order=latest&before=e40&limit=3&${cursorOf(first)}`)
  assert.deepEqual(idsOf(next), ['e36', 'e35', 'e34'])
  assert.deepEqual(await rows('before', '?order=latest&before=e0'), { items: [], nextCursor: null })
  const refused = async (query: string) => refusalOf(await service.operator(`${timelineOf('before')}?${query}`))
  assert.deepEqual(await refused('before=e40'), [400, 'invalid_request'])
  assert.deepEqual(await refused('order=latest&before=none'), [404, 'not_found'])
  assert.deepEqual(await refused('order=latest&before=%00'), [404, 'not_found'])
  assert.deepEqual(await refused(`order=latest&before=e41&${cursorOf(first)}`), [400, 'invalid_cursor'])
})

test('a page has 1 to 200 rows, and paging returns each row once in either order', async () => {
  const events = Array.from({ length: 100 }, (_, index) => event({ runId: 'long', timestamp: Date.now() - index }))
  const more = Array.from({ length: 100 }, (_, index) => event({ runId: 'long', timestamp: Date.now() + index }))
  await service.record(events)
  await service.record([...more])
  await service.record([event({ runId: 'long' })])
  assert.equal((await rows('long', `?limit=${LIMITS.eventsPageMax}`)).items.length, LIMITS.eventsPageMax)
  assert.equal((await rows('long')).items.length, LIMITS.eventsPageDefault)
  for (const order of EVENT_ORDERS) {
    const met = new Set<string>()
    let query = ''
    for (let page = await rows('long', `?order=${order}&limit=90`); page.items.length > 0;) {
      for (const id of idsOf(page)) assert.ok(!met.has(id), id)
      for (const id of idsOf(page)) met.add(id)
      if (page.nextCursor === null) break
      query = `?order=${order}&limit=90&${cursorOf(page)}`
      page = await rows('long', query)
    }
    assert.equal(met.size, 201, order)
  }
  for (const query of ['limit=0', `limit=${LIMITS.eventsPageMax + 1}`, 'order=random', 'order=']) {
    assert.deepEqual(
      refusalOf(await service.operator(`${timelineOf('long')}?${query}`)),
      [400, 'invalid_request'],
      query,
    )
  }
  const byTime = await rows('long', '?limit=1')
  const swapped = await service.operator(`${timelineOf('long')}?order=arrival&${cursorOf(byTime)}`)
  assert.deepEqual(refusalOf(swapped), [400, 'invalid_cursor'])
})

test('rows are filtered by their type and by a text in their label', async () => {
  const now = Date.now()
  await service.record([
    event({ runId: 'some', eventId: 'a', eventType: 'TOOL_CALL', label: 'Refund order', timestamp: now }),
    event({ runId: 'some', eventId: 'b', eventType: 'AGENT_STEP', label: 'refund?', timestamp: now + 1 }),
    event({ runId: 'some', eventId: 'c', eventType: 'TOOL_CALL', label: 'Mail', timestamp: now + 2 }),
  ])
  for (const order of ['time', 'arrival']) {
    const found = async (query: string) => idsOf(await rows('some', `?order=${order}&${query}`))
    assert.deepEqual(await found('eventType=TOOL_CALL'), ['a', 'c'])
    assert.deepEqual(await found('q=REFUND'), ['a', 'b'])
    assert.deepEqual(await found('q=refund&eventType=TOOL_CALL'), ['a'])
    assert.deepEqual(await found('q=%00'), [])
    const [type, text] = ['T'.repeat(LIMITS.eventTypeChars), 'é'.repeat(LIMITS.searchChars)]
    assert.deepEqual(await found(`eventType=${type}&q=${encodeURIComponent(text)}`), [])
    const refused = [`eventType=${type}T`, 'eventType=', 'eventType=A&eventType=A']
    for (const query of [...refused, `q=${encodeURIComponent(text)}x`, 'q=', 'q=a&q=b']) {
      const answer = await service.operator(`${timelineOf('some')}?order=${order}&${query}`)
      assert.deepEqual(refusalOf(answer), [400, 'invalid_request'], query)
    }
    const first = await rows('some', `?order=${order}&q=refund&limit=1`)
    assert.deepEqual(await found(`q=refund&${cursorOf(first)}`), ['b'])
    for (const query of [cursorOf(first), `q=mail&${cursorOf(first)}`, `q=refund&eventType=A&${cursorOf(first)}`]) {
      const answer = await service.operator(`${timelineOf('some')}?order=${order}&${query}`)
      assert.deepEqual(refusalOf(answer), [400, 'invalid_cursor'], query)
    }
  }
  assert.equal((await rows('some', '?q=refund')).nextCursor, null)
  assert.deepEqual(idsOf(await rows('some', '?order=latest&limit=2')), ['c', 'b'])
})

test('a filtered page ends after 5,000 rows, with a cursor to continue', async () => {
  const now = Date.now() - 60_000
  for (let n = 0; n <= LIMITS.eventsLookedAt; n += LIMITS.batchEvents) {
    const events = Array.from({ length: LIMITS.batchEvents }, (_, index) => {
      const label = n + index < LIMITS.eventsLookedAt ? 'hay' : 'needle'
      return event({ runId: 'hay', label, timestamp: now + n + index })
    })
    await service.record(events)
  }
  for (const order of ['time', 'arrival']) {
    const first = await rows('hay', `?order=${order}&q=needle`)
    assert.deepEqual(first.items, [])
    const second = await rows('hay', `?order=${order}&q=needle&${cursorOf(first)}`)
    assert.equal(second.items.length, LIMITS.batchEvents)
  }
})

test('an event is returned with the payload as sent', async () => {
  const payload = '{"10":1,"2":1.0,"n":9007199254740993,"n":-0,"__proto__":{"a":"\\u0041"}}'
  const sent = JSON.stringify([event({ runId: 'exact', eventId: 'e/1 ä' })]).replace(/}\]$/, `,"payload":${payload}}]`)
  assert.equal((await service.record(sent)).body.success, true)
  const answer = await service.operator(`${timelineOf('exact')}/${encodeURIComponent('e/1 ä')}`)
  const read = replyOf('readEvent', answer)
  assert.ok(answer.text.endsWith(`"payload":${payload}}`), answer.text)
  const [row] = (await rows('exact')).items
  const { payload: _payload, estimatedCost, priceTable, unpricedCalls, ...fields } = read
  assert.deepEqual([estimatedCost, priceTable, unpricedCalls], [null, null, 0])
  assert.deepEqual({ ...fields, latency: null, tokens: null, cost: null, payloadBytes: payload.length }, row)
})

test('a missing event is 404, whichever part of the path is missing', async () => {
  await service.record([event({ runId: 'there', eventId: 'there' })])
  for (const path of ['there/events/absent', 'absent/events/there', 'there/events/%00', '%00/events/there']) {
    const answer = await service.operator(`/environments/${service.environmentId}/runs/${path}`)
    assert.deepEqual(refusalOf(answer), [404, 'not_found'], path)
  }
  assert.deepEqual(refusalOf(await service.operator(timelineOf('absent'))), [404, 'not_found'])
})

const trace = async (runId: string, eventId: string) =>
  replyOf('traceEvent', await service.operator(`${timelineOf(runId)}/${encodeURIComponent(eventId)}/trace`))

test('a trace shows where a stored event is, whether it counted or closed its run, and what was not understood', async () => {
  const now = Date.now()
  await service.record([
    event({ runId: 'traced', eventId: 'step', timestamp: now - 30 }),
    event({ runId: 'traced', eventId: 'call', timestamp: now - 20, eventType: 'LLM_CALL', payload: { cost: 0.1 } }),
    event({ runId: 'traced', eventId: 'free', timestamp: now - 10, eventType: 'LLM_CALL', payload: { cost: -1 } }),
    event({ runId: 'traced', eventId: 'end', eventType: 'SESSION_OUTCOME', payload: { status: 'COMPLETED' } }),
    event({ runId: 'traced', eventId: 'end 2', eventType: 'SESSION_OUTCOME', payload: { status: 'FAILED' } }),
  ])
  const facts = async (eventId: string) => {
    const { outcome, position, countedUsage, closedRun, event: stored, warnings = [] } = await trace('traced', eventId)
    assert.equal(stored?.eventId, eventId)
    return [outcome, position, countedUsage, closedRun, ...warnings.map(({ code }) => code)]
  }
  assert.deepEqual(await facts('step'), ['stored', 1, false, false])
  assert.deepEqual(await facts('call'), ['stored', 2, true, false])
  assert.deepEqual(await facts('free'), ['stored', 3, false, false, 'cost_not_counted'])
  assert.deepEqual(await facts('end'), ['stored', 4, false, true])
  assert.deepEqual(await facts('end 2'), ['stored', 5, false, false])
})

test('a trace shows why an event was rejected, until it is stored', async () => {
  const refused = event({ runId: 'refused', eventId: 'late', timestamp: Date.now() + 3_600_000 })
  await service.record([refused])
  const { outcome, rejection } = await trace('refused', 'late')
  assert.deepEqual([outcome, rejection?.code], ['rejected', 'timestamp_too_new'])
  assert.match(rejection?.message ?? '', /5 minutes/)
  await service.record([{ ...refused, timestamp: Date.now() }])
  assert.equal((await trace('refused', 'late')).outcome, 'stored')
})

test('an event that was never judged is unknown', async () => {
  assert.deepEqual(await trace('refused', 'never'), { outcome: 'unknown' })
  assert.deepEqual(await trace('no run', 'never'), { outcome: 'unknown' })
})

test('an id with NUL names no event', async () => {
  const answer = await service.operator(`/environments/${service.environmentId}/runs/%00/events/%00/trace`)
  assert.deepEqual(refusalOf(answer), [404, 'not_found'])
})

test('the problems of a run come with their reasons, in pages, from far into a long run', async () => {
  const start = Date.now() - 60_000
  const fine = Array.from({ length: 400 }, (_, n) =>
    event({ runId: 'ill', eventType: 'TOOL_CALL', payload: { toolName: 'read', output: 'ok' }, timestamp: start + n }),
  )
  const ill = (eventId: string, eventType: string, at: number, payload: Record<string, unknown>, label = eventId) =>
    event({ runId: 'ill', eventId, eventType, label, payload, timestamp: start + at })
  const policyIds = ['refunds']
  const reason = 'policy "refunds": above 500 a person decides'
  for (let at = 0; at < fine.length; at += LIMITS.batchEvents)
    await service.record(fine.slice(at, at + LIMITS.batchEvents))
  await service.record([
    ill('asked', 'POLICY_DECISION', 500, { action: 'REQUIRE_APPROVAL', toolName: 'refund', policyIds, reason }),
    ill('held', 'POLICY_DECISION', 510, { action: 'BLOCK', toolName: 'x'.repeat(9_000) }),
    ill('allowed', 'POLICY_DECISION', 515, { action: 'ALLOW', toolName: 'refund' }),
    ill('failed', 'TOOL_CALL', 520, { toolName: 'pay', error: { name: 'HttpError', message: '503\nmore' } }, 'pay'),
    ill('said', 'ERROR', 530, {}, 'It broke'),
    ill('end', 'SESSION_OUTCOME', 540, { status: 'FAILED' }, 'Failed'),
  ])
  const address = timelineOf('ill').replace(/events$/, 'problems')
  const read = async (query: string) => replyOf('listRunProblems', await service.operator(`${address}${query}`))
  const { items, nextCursor } = await read('')
  assert.equal(nextCursor, null)
  assert.deepEqual(
    items.map(({ eventId, kind, name, why }) => [eventId, kind, name.slice(0, 10), why]),
    [
      ['asked', 'approval', 'refund', 'by refunds: above 500 a person decides'],
      ['held', 'blocked', 'xxxxxxxxxx', ''],
      ['failed', 'error', 'pay', 'HttpError: 503'],
      ['said', 'error', 'It broke', ''],
      ['end', 'error', 'Failed', ''],
    ],
  )
  assert.ok((items[1]?.name.length ?? 0) < 200)
  const first = await read('?limit=2')
  assert.deepEqual(idsOf(first), ['asked', 'held'])
  assert.deepEqual(idsOf(await read(`?${cursorOf(first)}`)), ['failed', 'said', 'end'])
  const foreign = refusalOf(await service.operator(`${timelineOf('ill')}?${cursorOf(first)}`))
  assert.deepEqual(foreign, [400, 'invalid_cursor'])
  assert.deepEqual(refusalOf(await service.operator(address.replace('/ill/', '/none/'))), [404, 'not_found'])
})
