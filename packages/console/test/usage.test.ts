/** Usage over time, and what is in force where. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import Database from 'better-sqlite3'
import { configurationCalls } from '../../server/test/setup/configuration-service.ts'
import { event } from '../../server/test/setup/service.ts'
import { changeText, costChange, whyText } from '../src/runs/usage/cost-change.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, HARM, startConsole, type TestConsole } from './setup/console.ts'

const HOUR_MS = 3_600_000

test('a change of cost is split into runs, tokens of a run and the price of a token', () => {
  const sum = (runs: number, totalTokens: number, cost: number, unpricedCalls = 0) => ({
    runs,
    usage: { promptTokens: 0, completionTokens: 0, totalTokens, cost },
    estimatedCost: null,
    priceTable: null,
    unpricedCalls,
  })
  const change = costChange(sum(20, 4_000, 8), sum(10, 1_000, 2))
  assert.deepEqual(change, { cost: 4, runs: 2, tokens: 2, price: 1 })
  assert.equal(change && whyText(change), 'runs ×2.0 · tokens a run ×2.0')
  assert.equal(whyText({ cost: 1, runs: 1, tokens: 1.01, price: 1 }), 'as before')
  assert.deepEqual([1, 1.4, 0.75, 4, 0.001].map(changeText), ['±0 %', '+40 %', '−25 %', '×4.0', 'below 1 % of before'])
  // If one of the two values is unknown, so is the change.
  assert.equal(costChange(sum(1, 1, 1), undefined), null)
  assert.equal(costChange(sum(1, 1, 1, 1), sum(1, 1, 1)), null)
  assert.equal(costChange(sum(1, 0, 1), sum(1, 1, 1)), null)
})

describe('usage and rollout', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  before(async () => {
    tacho = await startConsole()
  })
  after(() => tacho.close())

  test('usage is empty at first, then has lines and sums by agent and model, as a file too', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/usage`)
    await page.getByRole('heading', { name: 'Nothing was recorded in this period' }).waitFor()
    const called = (agent: string, model: string, cost: number, hours: number) =>
      event({
        runId: `${agent} ${hours}`,
        agentId: agent,
        agentName: agent,
        eventType: 'LLM_CALL',
        timestamp: Date.now() - hours * HOUR_MS,
        payload: { model, cost, usage: { promptTokens: 10, completionTokens: 5, totalTokens: 15 } },
      })
    await tacho.service.record([
      called('support', 'small', 0.5, 1),
      called('support', 'large', 1.25, 3),
      called('=cmd', 'large', 0.25, 30),
      event({
        runId: 'paid',
        sessionId: 'chat 7',
        agentId: 'support',
        agentName: 'support',
        eventType: 'TOOL_CALL',
        timestamp: Date.now() - 5 * HOUR_MS,
        payload: { toolName: 'pay', latency: 100, error: 'refused', userId: 'customer 7' },
      }),
    ])
    await page.reload()
    const row = (name: string) => page.getByRole('table', { name: 'Sums' }).getByRole('row').filter({ hasText: name })
    await row('support').getByText('1.75').waitFor()
    await row('=cmd').getByText('0.25').first().waitFor()
    const figure = page.getByRole('figure', { name: /^cost by agent/ })
    await figure.getByText('$2.00', { exact: true }).waitFor()
    await figure.getByText('nothing recorded in the 7 days before').waitFor()
    assert.deepEqual(await figure.getByRole('listitem').allTextContents(), ['support$1.75', '=cmd$0.25'])
    await page.getByLabel('By', { exact: true }).selectOption('by model')
    await row('large').getByText('1.50').waitFor()
    await page.getByLabel('Period').selectOption('Last 24 hours')
    await row('large').getByText('1.25').waitFor()
    await page.waitForURL(/usage\?by=model&since=24h$/)
    await page.getByLabel('Period').selectOption('Last year')
    await row('large').getByText('1.50').waitFor()
    assert.equal(await row('large').count(), 1)
    await page.goto(`${tacho.home}/usage`)
    const saving = page.waitForEvent('download')
    await page.getByRole('button', { name: 'CSV' }).click()
    const text = await readFile(await (await saving).path(), 'utf8')
    assert.match(text, /^time,agent,runs,completed,failed,cancelled,steps,tokens,cost in US dollars,/)
    assert.match(text, /,support,1,0,0,0,1,15,1\.25,/)
    assert.match(text, /,'=cmd,1,0,0,0,1,15,0\.25,/)
    await page.getByLabel('Measure').selectOption('Model latency, p95')
    // The calls have no latency.
    await page.getByText('None of it was recorded in this period.').waitFor()
    await page.getByLabel('Measure').selectOption('Runs by outcome')
    const outcomes = page.getByRole('figure', { name: /^outcomes by agent/ })
    await outcomes.getByRole('listitem').filter({ hasText: 'Running' }).getByText('4').waitFor()
    await page.getByLabel('By', { exact: true }).selectOption('by tool')
    await row('pay').getByText('1 (100 %)').waitFor()
    await page.getByRole('figure', { name: /^steps by tool/ }).waitFor()
    await page.getByLabel('Measure').selectOption('Failed calls')
    const failures = page.getByRole('figure', { name: /^failed by tool/ })
    await failures.getByRole('listitem').waitFor()
    assert.deepEqual(await failures.getByRole('listitem').allTextContents(), ['pay1'])
    assert.equal(
      await row('pay')
        .getByRole('link')
        .getAttribute('href')
        .then((href) => href?.includes('tool=pay')),
      true,
    )
    await page.getByLabel('By', { exact: true }).selectOption('by session')
    await row('chat 7').getByRole('link').waitFor()
    await page.getByRole('figure', { name: /of all runs/ }).waitFor()
    await page.getByLabel('By', { exact: true }).selectOption('by end user')
    await page.waitForURL(/usage\?.*by=user/)
    await page.getByRole('columnheader', { name: 'End user' }).waitFor()
    const ofUser = await row('customer 7').getByRole('link').getAttribute('href')
    assert.match(ofUser ?? '', /\/runs\?.*user=customer/)
    await page.getByLabel('By', { exact: true }).selectOption('by prompt version')
    await page.getByRole('heading', { name: 'Nothing was recorded in this period' }).waitFor()
    await close()
  })

  test('a click at a moment opens the runs of that time', async () => {
    // Three hours, because a new hour can begin during the test.
    const hours = [0, 1, 2].map((ago) => (Math.floor(Date.now() / HOUR_MS) - ago) * HOUR_MS)
    // A longer id would be cut in the middle.
    const runIn = (hour: number | string) => `at ${new Date(hour).toISOString().slice(0, 13)}`
    await tacho.service.record(
      hours.map((hour) => event({ runId: runIn(hour), agentId: 'support', agentName: 'support', timestamp: hour })),
    )
    const { page, close } = await tacho.open(`${tacho.home}/usage?since=24h`)
    // Wait for the sums, because data that arrives above the plot moves it.
    await page.getByRole('table', { name: 'Sums' }).getByText('support').waitFor()
    const box = await page.locator('.plot .u-over').boundingBox()
    assert.ok(box)
    // Click the last slot but one of 24.
    await page.mouse.click(box.x + (box.width * 22) / 23, box.y + 40)
    await page.waitForURL('**/runs?from=*')
    const runs = page.locator('[role=row] a').locator('bdi', { hasText: /^at / })
    await runs.first().waitFor()
    const from = new URL(page.url()).searchParams.get('from') ?? ''
    assert.deepEqual(await runs.allTextContents(), [runIn(from)])
    await close()
  })

  test('a drag zooms, so the left edge is a later time, and opens nothing', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/usage?since=24h`)
    const plot = page.locator('.plot .u-over').first()
    await page.getByRole('table', { name: 'Sums' }).getByText('support').waitFor()
    const box = await plot.boundingBox()
    assert.ok(box)
    const { x, y, width } = box
    await page.mouse.move(x + width * 0.4, y + 40)
    await page.mouse.down()
    await page.mouse.move(x + width * 0.9, y + 40, { steps: 5 })
    await page.mouse.up()
    assert.match(page.url(), /\/usage\?/)
    await page.mouse.click(x + 3, y + 40)
    await page.waitForURL('**/runs?from=*')
    const from = Date.parse(new URL(page.url()).searchParams.get('from') ?? '')
    const hoursAgo = (Date.now() - from) / 3_600_000
    assert.ok(hoursAgo > 11 && hoursAgo < 17, `${hoursAgo} hours ago`)
    await close()
  })

  test('the rollout shows what is in force in each environment, and the changes', async () => {
    const { newPolicy, deploy, promote, staging } = await configurationCalls(tacho.service)
    await newPolicy({ policyId: 'limit' })
    await deploy([['policy', 'limit', '1']])
    await promote({ from: tacho.service.environmentId }, staging)
    const { page, close } = await tacho.open(`${tacho.home}/rollout`)
    for (const name of ['development', 'staging']) {
      await page.getByRole('region', { name, exact: true }).getByText('version 1').waitFor()
    }
    await page.getByRole('region', { name: 'Changes in development' }).getByText('deployed by').waitFor()
    await page.getByRole('link', { name: 'limit' }).first().click()
    await page.waitForURL('**/policies/limit?show=deployments')
    await close()
  })

  test('the rollout says how many clients have the revision, and marks those that do not', async () => {
    const { environmentId } = tacho.service
    const at = `/environments/${environmentId}/deployments`
    const { revision } = (await tacho.service.operator<{ revision: string }>(at)).body
    const now = Date.now()
    // The server writes the clients that it has seen once a minute. Write an earlier time directly.
    const db = new Database(path.join(tacho.service.directory, 'tacho.db'))
    const insert = db.prepare('INSERT INTO configuration_clients VALUES (?, ?, ?, ?, ?, ?)')
    insert.run(environmentId, 'client', 'worker-1', 'k', revision, now)
    insert.run(environmentId, 'client', HARM, 'k', 'a'.repeat(64), now + 3 * 60_000)
    insert.run(environmentId, 'client', 'worker-3', 'k', revision, now - 11 * 60_000)
    insert.run(environmentId, 'key', '0123456789abcdef', '0123456789abcdef', revision, now)
    db.close()
    const { page, close } = await tacho.open(`${tacho.home}/rollout`)
    const section = page.getByRole('region', { name: 'development', exact: true })
    await section.getByText('2 of 3 clients have it').waitFor()
    await section.getByText('1 behind').waitFor()
    await section.getByRole('button', { name: 'Show clients' }).press('Enter')
    const row = (text: string) => section.getByRole('row').filter({ hasText: text })
    await row('worker-1').getByText('Has it').waitFor()
    await row('worker-3').getByText('Silent').waitFor()
    await row('<img src=x').getByText('Behind').waitFor()
    await row('key 0123456789abcdef').getByText('Has it').waitFor()
    await section.getByLabel('Standing in development').selectOption('Behind')
    await row('worker-1').waitFor({ state: 'detached' })
    assert.equal(await row('<img src=x').count(), 1)
    const none = page.getByRole('region', { name: 'staging', exact: true })
    await none.getByText('No client has asked for this configuration yet.').waitFor()
    await close()
  })

  test('deployments stand as marks on each axis of time, and in a table that leads to them', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/usage?since=24h`)
    for (const at of ['/usage?since=24h', '', '/agents/support?since=24h']) {
      if (at !== '/usage?since=24h') await page.goto(`${tacho.home}${at}`)
      const mark = page
        .getByRole('list', { name: 'Deployments' })
        .getByRole('link', { name: /policy limit: version 1$/ })
      await mark.focus()
      const said = mark.getByText('policy limit: version 1')
      await said.waitFor()
      await mark.blur()
      await said.waitFor({ state: 'hidden' })
      await mark.hover()
      await said.waitFor()
      await page.getByText('1 deployment in this time').click()
      const row = page.getByRole('table', { name: 'Deployments in this time' }).getByRole('row').last()
      assert.match((await row.getByRole('link').getAttribute('href')) ?? '', /\/policies\/limit\?show=versions$/)
      await page.getByText(/(Days begin at midnight|Hours) in /).waitFor()
      await assertLooks(page, `marks${at.replace(/\?.*/, '').replaceAll('/', ' ')}`)
    }
    await close()
  })

  test('waiting times stand beside the agents, and the overview says whether the failures differ from those before', async () => {
    const ended = (runId: string, hours: number, status: string) =>
      [4_000, 0].map((ms) =>
        event({
          runId,
          agentId: 'support',
          agentName: 'support',
          eventType: ms === 0 ? 'SESSION_OUTCOME' : 'USER_INPUT',
          timestamp: Date.now() - hours * HOUR_MS - ms,
          payload: ms === 0 ? { status } : {},
        }),
      )
    await tacho.service.record([
      ...ended('failed now', 2, 'FAILED'),
      ...ended('fine now', 2, 'COMPLETED'),
      ...ended('fine before', 30, 'COMPLETED'),
    ])
    const { page, close } = await tacho.open(`${tacho.home}/usage?since=24h`)
    const sums = page.getByRole('table', { name: 'Sums' })
    await sums.getByRole('columnheader', { name: 'Run p50 / p95' }).waitFor()
    await sums
      .getByRole('row')
      .filter({ hasText: 'support' })
      .getByText(/4(\.0)? s \/ 4(\.0)? s/)
      .waitFor()
    await assertLooks(page, 'usage with waiting')
    await page.goto(tacho.home)
    await page
      .getByText(
        /^No difference in failures that these numbers can show \(p ≈ 1\): This time failed in 1 of 2 ended runs .* of the 24 hours before\./,
      )
      .waitFor()
    await assertLooks(page, 'overview with a comparison')
    await close()
  })

  test('the pages are accessible and fit, light, dark and on a phone', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/usage`)
    await page.getByRole('link', { name: 'support' }).waitFor()
    await page.locator('.plot canvas').waitFor()
    await assertLooks(page, 'usage')
    // A printed page is white and narrow, independent of the screen.
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.emulateMedia({ media: 'print' })
    await page.waitForFunction(() => {
      const canvas = document.querySelector<HTMLCanvasElement>('.plot canvas')
      const { data = [] } = canvas?.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height) ?? {}
      let lines = 0
      for (let at = 0; at < data.length; at += 4) if (data[at] === 0xe4 && data[at + 1] === 0xe5) lines++
      return lines > 100 && (canvas?.clientWidth ?? 0) <= 640
    })
    await page.emulateMedia({ media: 'screen', colorScheme: 'light' })
    await page.goto(`${tacho.home}/rollout`)
    await page.getByRole('link', { name: 'limit' }).first().waitFor()
    await page.getByRole('button', { name: 'Show clients' }).click()
    await page.getByRole('table', { name: 'Clients of development' }).waitFor()
    await assertLooks(page, 'rollout')
    await close()
  })
})
