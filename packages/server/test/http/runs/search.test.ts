import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { SearchHitPage, SearchSettings } from '@tacho/contract/runs/search.ts'
import { event, startService, type Service } from '../../setup/service.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

const home = () => `/environments/${service.environmentId}/search`
const search = (q: string, rest = '') => service.operator<SearchHitPage>(`${home()}?q=${encodeURIComponent(q)}${rest}`)
const switchTo = (enabled: boolean) => service.operator<SearchSettings>(`${home()}/settings`, { body: { enabled } })

/** Waits until the settings are as wanted. */
async function settled(isWanted: (settings: SearchSettings) => boolean): Promise<void> {
  for (;;) {
    const { body } = await service.operator<SearchSettings>(`${home()}/settings`)
    if (isWanted(body)) return
    await wait(20)
  }
}

test('search is off, is switched on, finds what is recorded, and is switched off', { timeout: 900_000 }, async () => {
  const off = await search('refund')
  assert.deepEqual([off.status, off.text.includes('Search is off')], [409, true])
  const record = (eventId: string, text: string, timestamp = Date.now()) =>
    service.api('/events/batch', {
      body: [
        {
          eventId,
          clientId: 'c',
          runId: `run-${eventId}`,
          agentName: 'Bot',
          eventType: 'TOOL_CALL',
          label: 'Call',
          timestamp,
          payload: { toolName: 'issue_refund', input: { text } },
        },
      ],
    })
  await record('older', 'Refund the café', Date.now() - 60_000)
  const on = await switchTo(true)
  assert.deepEqual([on.status, on.body.state], [200, 'INDEXING'])
  await record('newer', 'Another refund')
  await settled(({ indexedEvents, state }) => indexedEvents === 2 && state === 'ON')
  const { body } = await search('refund tool:ISSUE type:TOOL_CALL')
  assert.deepEqual(
    body.items.map(({ event, run }) => [event.eventId, run.runId]),
    [
      ['newer', 'run-newer'],
      ['older', 'run-older'],
    ],
  )
  const page = await search('refund', '&limit=1')
  const next = await search('refund', `&limit=1&cursor=${page.body.nextCursor}`)
  assert.deepEqual(
    [page, next].map((one) => one.body.items[0]?.event.eventId),
    ['newer', 'older'],
  )
  assert.equal((await search('other', `&cursor=${page.body.nextCursor}`)).status, 400)
  const cafe = await search('CAFE')
  assert.deepEqual(cafe.body.items[0]?.snippet, [
    { text: 'Refund the ', isHit: false },
    { text: 'café', isHit: true },
  ])

  assert.equal((await switchTo(false)).status, 200)
  await settled(({ state }) => state === 'OFF')
  assert.equal((await search('refund')).status, 409)
})

test('an invalid query is refused with its position, and nothing reaches the store as syntax', async () => {
  await switchTo(true)
  for (const [q, message] of [
    ['refund "order', 'q has a quote that is not closed (at character 8)'],
    [
      '𝄞a colour:red',
      'q has the unknown field colour. Fields are tool, type, agent, model, label; quote other text (at character 4)',
    ],
    ['-refund', 'q needs a word or field that is not excluded (at character 1)'],
    ['a tool:', 'q needs a letter or digit after tool: (at character 3)'],
    ['a - b', 'q needs a letter or digit after the minus (at character 3)'],
    ['"*"', 'q needs a letter or digit here (at character 1)'],
    [
      Array.from({ length: LIMITS.searchQueryWords + 1 }, (_, n) => `${n}`).join(' '),
      'q has more than 32 words (at character 87)',
    ],
    ['   ', 'q needs a word or field that is not excluded (at character 1)'],
  ] as const) {
    const { status, text } = await search(q)
    assert.equal(status, 400, text)
    assert.ok(text.includes(JSON.stringify(message).slice(1, -1)), `${q}: ${text}`)
  }
  const most = 'a'.repeat(LIMITS.searchQueryChars)
  assert.deepEqual([(await search(most)).status, (await search(`${most}a`)).status], [200, 400])
  const huge = await search('a '.repeat(500_000))
  assert.ok(huge.status >= 400 && huge.status < 500, `${huge.status}`)
  assert.equal((await search('words -label:"a')).status, 400)
  assert.equal((await service.operator(`${home()}?q=a%ED%A0%B4`)).status, 200, 'half a character')
  const asText = ['a AND NOT b', 'NEAR(a b)', 'NEAR(a b, 5)', "a' OR 1=1", 'a*', '^a', '{a b}: c', '12:30']
  const strange = ['https://x.example/?q=1', '__proto__:a', '\u202ea\u202c', 'a\0b', '\ufeffa']
  for (const q of [...asText, ...strange]) {
    assert.equal((await search(q)).status, 200, q)
  }
  const range = await search('a', '&from=2020-01-01T00:00:00.000Z&to=2026-01-01T00:00:00.000Z')
  assert.match(range.text, /must be at most 400 days before to/)
  for (const name of ['constructor', 'toString', 'hasOwnProperty']) {
    assert.match((await search(`${name}:a`)).text, new RegExp(`unknown field ${name}`))
  }
})

test('a range before or after all events finds none, however far away it is', async () => {
  await switchTo(true)
  await service.record([event({ label: 'everywhen' })])
  await settled(({ state, waitingRuns }) => state === 'ON' && waitingRuns === 0)
  const within = async (from: string, to: string) => {
    const { status, text, body } = await search('everywhen', `&from=${from}T00:00:00.000Z&to=${to}T00:00:00.000Z`)
    assert.equal(status, 200, text)
    return body.items.length
  }
  const now = Date.now()
  const day = (days: number) => new Date(now + days * 86_400_000).toISOString().slice(0, 10)
  assert.equal(await within(day(-1), day(2)), 1)
  assert.equal(await within(day(-390), day(2)), 1)
  for (const [from, to] of [
    ['0001-01-01', '0001-12-31'],
    ['1800-01-01', '1800-12-31'],
    ['2150-01-01', '2150-12-31'],
    ['9999-01-01', '9999-12-31'],
    [day(-9), day(-8)],
    [day(2), day(2)],
  ] as const) {
    assert.equal(await within(from, to), 0, from)
  }
  const turned = await search('everywhen', `&from=${day(2)}T00:00:00.000Z&to=${day(1)}T00:00:00.000Z`)
  assert.match(turned.text, /to must not be before from/)
})

test('the newest steps with an id are found without the id in an address', async () => {
  const find = (id: string, environmentId = service.environmentId) =>
    service.operator<{ items: unknown[]; more: boolean; detail: string }>(
      `/environments/${environmentId}/erasures/steps`,
      { body: { id } },
    )
  await switchTo(true)
  const ids = Array.from({ length: 14 }, (_, n) => `of a person ${n}`)
  await service.record(
    ids.map((eventId, n) =>
      event({ eventId, runId: 'person', timestamp: Date.now() - 1_000 + n, payload: { user: 'anna-0815 "x"' } }),
    ),
  )
  await settled(({ state, waitingRuns }) => state === 'ON' && waitingRuns === 0)
  const { status, body } = await find('anna-0815 "x"')
  assert.equal(status, 200)
  const newest = ids.toReversed().slice(0, 12)
  assert.deepEqual(body, { items: newest.map((eventId) => ({ runId: 'person', eventId })), more: true })
  for (const id of ['bert-0815', '"', '--', 'x '.repeat(100)])
    assert.deepEqual((await find(id)).body, { items: [], more: false }, id)
  assert.equal((await find('')).status, 400)
  // Each character is a word, and a query has at most 32.
  const long = '顧客番号'.repeat(10)
  await service.record([event({ eventId: 'long id', runId: 'person', payload: { user: long } })])
  await settled(({ state, waitingRuns }) => state === 'ON' && waitingRuns === 0)
  assert.deepEqual((await find(long)).body, { items: [{ runId: 'person', eventId: 'long id' }], more: false })
  const other = await service.newTenant('without a search')
  const off = await find('anna-0815', other.environmentId)
  assert.deepEqual([off.status, /Search is off/.test(off.body.detail)], [409, true])
})

test('many searches at once are answered, and recording goes on', async () => {
  await switchTo(true)
  // The maximum number of waiting requests of one token.
  const searches = Array.from({ length: LIMITS.turnsWaiting / 2 }, (_, n) => search(`word${n} everywhen`))
  const recorded = await Promise.all(Array.from({ length: 20 }, () => service.record([event()])))
  assert.deepEqual(new Set(recorded.map(({ body }) => body.success)), new Set([true]))
  const answers = await Promise.all(searches)
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
  // Later searches get a turn again.
  assert.equal((await search('everywhen')).status, 200)
})
