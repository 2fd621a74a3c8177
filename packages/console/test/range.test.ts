/** One range of time for all pages: read from the address, kept by the navigation. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { issueRecord, openedIssue } from '../../server/test/setup/issue-service.ts'
import { event } from '../../server/test/setup/service.ts'
import { startOfDay } from '@tacho/contract/engine/days.ts'
import { hoursBefore, hoursOf, readRange, runsRange, stepAt, stepsOf, timesOfRange } from '../src/web/address.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, startConsole, type TestConsole } from './setup/console.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const NOW = Date.parse('2026-11-20T10:20:00Z')
const at = (text: string) => Date.parse(text)

test('an address has a length before now, or exact times, which count first; the rest is left out', () => {
  assert.deepEqual(readRange({ since: '7d', q: 'x' }), { since: '7d' })
  assert.deepEqual(readRange({ since: '7d', from: '2026-11-01T00:00:00Z' }), { from: '2026-11-01T00:00:00Z' })
  assert.deepEqual(readRange({ from: 'yesterday', to: '2026-11-02T00:00:00Z' }), { to: '2026-11-02T00:00:00Z' })
  for (const wrong of [
    {},
    { since: '8d' },
    { since: 'constructor' },
    { from: 'yesterday' },
    { from: ['2026-11-01'] },
    { from: '2026-11-02T00:00:00Z', to: '2026-11-02T00:00:00Z' },
  ]) {
    assert.deepEqual(readRange(wrong), {}, JSON.stringify(wrong))
  }
})

test('the API gets the times of a range; an empty one limits nothing', () => {
  assert.deepEqual(timesOfRange({}, NOW), {})
  assert.deepEqual(timesOfRange({ since: '24h' }, NOW), { from: '2026-11-19T10:20:00.000Z' })
  const exact = { from: '2026-11-01T00:00:00Z', to: '2026-11-02T00:00:00Z' }
  assert.deepEqual(timesOfRange(exact, NOW), exact)
})

test('usage ends with this hour or at the given time, is by the day above a week, and at most of a year', () => {
  const hours = (range: Parameters<typeof hoursOf>[0]) => hoursOf(range, '7d', NOW)
  const day = hours({ since: '24h' })
  assert.deepEqual([day.from, day.to, day.stepMs], [at('2026-11-19T11:00:00Z'), at('2026-11-20T11:00:00Z'), HOUR_MS])
  assert.deepEqual(hours({}), hours({ since: '7d' }))
  assert.equal(hours({ since: '30d' }).stepMs, DAY_MS)
  const exact = hours({ from: '2026-11-01T00:30:00Z', to: '2026-11-01T02:00:00Z' })
  assert.deepEqual([exact.from, exact.to, exact.isCut], [at('2026-11-01T00:30:00Z'), at('2026-11-01T02:00:00Z'), false])
  assert.deepEqual(exact.starts, ['2026-11-01T00:30:00Z', '2026-11-01T01:00:00Z'].map(at))
  const before = hoursBefore(exact)
  assert.deepEqual([before.from, before.to], [at('2026-10-31T23:00:00Z'), at('2026-11-01T00:30:00Z')])
  const long = hours({ from: '2020-01-01T00:00:00Z' })
  assert.deepEqual([long.from, long.isCut], [long.to - 365 * DAY_MS, true])
  assert.deepEqual(hours({ to: '2026-11-02T00:00:00Z' }).isCut, true)
  assert.deepEqual(runsRange(exact, { to: 'x' }), { from: '2026-11-01T00:30:00.000Z', to: '2026-11-01T02:00:00.000Z' })
  assert.deepEqual(runsRange(day, { since: '24h' }), { from: '2026-11-19T11:00:00.000Z' })
})

test('days begin at midnight in the zone of the reader, and have 23 or 25 hours when the clock changes', () => {
  const days = (now: string, zone: string) => hoursOf({ since: '30d' }, '7d', at(now), zone)
  for (const zone of ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kathmandu']) {
    for (const now of ['2026-11-20T10:20:00Z', '2026-11-02T10:20:00Z', '2026-04-01T23:40:00Z']) {
      const window = days(now, zone)
      assert.equal(window.starts.length, 30, `${zone} ${now}`)
      assert.deepEqual(stepsOf(window), { step: 'day', zone })
      const last = window.starts.at(-1) ?? 0
      assert.equal(last, startOfDay(at(now), zone), 'the last day is today')
      assert.deepEqual(stepAt(window, last - 1), { step: 28, end: last })
      assert.deepEqual(stepAt(window, at(now)), { step: 29, end: window.to })
      // The first days of the window do not depend on the time of day.
      const later = hoursOf({ since: '30d' }, '7d', last + 23 * HOUR_MS - 1, zone)
      assert.deepEqual(later.starts, window.starts)
    }
  }
  const lengths = (now: string) => {
    const { starts } = days(now, 'America/New_York')
    return new Set(starts.slice(1).map((start, day) => (start - (starts[day] ?? 0)) / HOUR_MS))
  }
  assert.deepEqual(lengths('2026-03-20T12:00:00Z'), new Set([23, 24]))
  assert.deepEqual(lengths('2026-11-20T12:00:00Z'), new Set([24, 25]))
  assert.deepEqual(lengths('2026-08-20T12:00:00Z'), new Set([24]))
})

describe('the range of the pages', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  before(async () => {
    tacho = await startConsole()
    const run = (runId: string, days: number) =>
      event({
        runId,
        label: runId,
        agentId: runId,
        agentName: runId,
        sessionId: `s ${runId}`,
        timestamp: Date.now() - days * DAY_MS,
      })
    await tacho.service.record([run('young', 0), run('middle', 3), run('old', 20)])
    for (const [detectionType, days] of [
      ['YOUNG', 0],
      ['OLD', 20],
    ] as const) {
      await openedIssue(tacho.service, issueRecord({ detectionType, detectedAt: Date.now() - days * DAY_MS }))
    }
  })
  after(() => tacho.close())

  test('a range goes along with the navigation, over a page without one, and means the same everywhere', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/runs`)
    const rows = page.getByRole('row')
    const row = (name: string) => page.getByRole('row').filter({ hasText: name }).first()
    const goTo = (name: string) =>
      page.getByRole('navigation', { name: 'Pages' }).locator('visible=true').getByRole('link', { name }).click()
    await row('old').waitFor()
    await page.getByRole('combobox', { name: 'Started' }).selectOption('Last 7 days')
    await page.waitForURL('**/runs?since=7d')
    await row('old').waitFor({ state: 'detached' })
    await row('middle').getByRole('link').first().click()
    await page.waitForURL('**/runs/middle')
    await goTo('Agents')
    await page.waitForURL('**/agents?since=7d')
    assert.equal(await page.getByLabel('Period').inputValue(), '7d')
    await rows.filter({ hasText: 'middle' }).waitFor()
    assert.equal(await rows.filter({ hasText: 'old' }).count(), 0)
    await page.getByLabel('Period').selectOption('Last 24 hours')
    await rows.filter({ hasText: 'middle' }).waitFor({ state: 'detached' })
    await page.keyboard.press('g')
    await page.keyboard.press('i')
    await page.waitForURL('**/issues?since=24h')
    await rows.filter({ hasText: 'YOUNG' }).waitFor()
    assert.equal(await rows.filter({ hasText: 'OLD' }).count(), 0)
    await page.getByLabel('Last seen').selectOption('Last 30 days')
    await rows.filter({ hasText: 'OLD' }).waitFor()
    await goTo('Usage')
    await page.waitForURL('**/usage?since=30d')
    await rows.filter({ hasText: 'old' }).waitFor()
    await goTo('Overview')
    await page.waitForURL(/development\/?[?]since=30d$/)
    await page.getByRole('table', { name: 'Agents, last 30 days' }).getByText('old').waitFor()
    await page.getByRole('list', { name: 'Runs per day' }).getByRole('link').nth(2).waitFor()
    await goTo('Runs')
    await page.waitForURL('**/runs?since=30d')
    for (const [tab, address] of [
      ['By session', '**/sessions?since=30d'],
      ['Search', '**/search?since=30d'],
      ['Judge', '**/judge?since=30d'],
      ['All', '**/runs?since=30d'],
    ] as const) {
      await page.getByRole('navigation', { name: 'Runs' }).getByRole('link', { name: tab }).click()
      await page.waitForURL(address)
    }
    await goTo('Policies')
    await page.waitForURL('**/policies')
    await goTo('Runs')
    await page.waitForURL('**/runs?since=30d')
    await page.getByRole('button', { name: 'Clear' }).click()
    await page.waitForURL('**/runs')
    await goTo('Usage')
    await page.waitForURL('**/usage')
    await close()
  })

  test('exact times are chosen in a dialog, and a page with them fits', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/agents/middle`)
    await page.getByLabel('Period').selectOption('From … to …')
    const dialog = page.getByRole('dialog', { name: 'From and to' })
    const local = (days: number) => {
      const time = new Date(Date.now() - days * DAY_MS)
      return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
    }
    await dialog.getByLabel('From').fill(local(2))
    await dialog.getByLabel('To').fill(local(4))
    await dialog.getByText('To must be after From.').waitFor()
    await dialog.getByLabel('From').fill(local(5))
    await dialog.getByLabel('To').fill(local(2))
    await dialog.getByRole('button', { name: 'Show' }).click()
    await page.waitForURL(/agents\/middle[?]from=.*&to=/)
    await page.getByText(/^All 1 run, .* to /).waitFor()
    await assertLooks(page, 'an agent of exact times')
    await page.goto(page.url().replace('agents/middle', ''))
    await page
      .getByRole('list', { name: /^Runs per / })
      .getByRole('link')
      .waitFor()
    await assertLooks(page, 'overview of exact times')
    await close()
  })

  test('what is no range leaves the address, and the page shows its default', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/runs?from=yesterday&since=8d`)
    await page.getByRole('row').filter({ hasText: 'old' }).waitFor()
    await page.waitForURL('**/runs')
    await page.goto(`${tacho.home}/usage?since=constructor`)
    await page.getByRole('row').filter({ hasText: 'middle' }).waitFor()
    assert.equal(await page.getByLabel('Period').inputValue(), '7d')
    await close()
  })
})
