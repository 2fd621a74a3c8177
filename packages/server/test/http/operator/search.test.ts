import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { LIMITS } from '@tacho/contract/limits.ts'
import type { SearchHitPage, SearchSettings } from '@tacho/contract/operator/search.ts'
import { startService, type Service } from '../../setup/service.ts'

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

test('search is off, is switched on, finds what is recorded, and is switched off', { timeout: 180_000 }, async () => {
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
  for (const q of ['a AND NOT b', 'NEAR(a b)', "a' OR 1=1", 'a*', 'https://x.example/?q=1', '^a', '{a}', '12:30']) {
    assert.equal((await search(q)).status, 200, q)
  }
  const range = await search('a', '&from=2020-01-01T00:00:00.000Z&to=2026-01-01T00:00:00.000Z')
  assert.match(range.text, /must be at most 400 days before to/)
})
