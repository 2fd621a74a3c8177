/** Agents and sessions: their newest runs summed up, each leading to its runs. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, HARM, startConsole, type TestConsole } from './setup/console.ts'

describe('agents and sessions', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  before(async () => {
    tacho = await startConsole()
  })
  after(() => tacho.close())

  const now = Date.now()
  const run = (runId: string, agent: string, sessionId: string | null, status: string | null, ms: number) => [
    event({ runId, agentId: agent, agentName: `${agent} ${HARM}`, sessionId, timestamp: now - ms }),
    event({
      runId,
      agentId: agent,
      agentName: `${agent} ${HARM}`,
      eventType: 'LLM_CALL',
      timestamp: now - ms,
      payload: { cost: 0.25, usage: { totalTokens: 100 } },
    }),
    ...(status === null
      ? []
      : [
          event({
            runId,
            agentId: agent,
            agentName: `${agent} ${HARM}`,
            eventType: 'SESSION_OUTCOME',
            timestamp: now,
            payload: { status },
          }),
        ]),
  ]

  test('without runs, both say what will be here', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/agents`)
    await page.getByRole('heading', { name: 'No agent has run yet' }).waitFor()
    await page.getByRole('link', { name: 'By session' }).click()
    await page.getByRole('heading', { name: 'No session yet' }).waitFor()
    await close()
  })

  test('runs are summed up by agent and by session, and each leads to its runs', async () => {
    await tacho.service.record([
      ...run('one', 'support', 'talk', 'COMPLETED', 60_000),
      ...run('two', 'support', 'talk', 'FAILED', 2_000),
      ...run('three', 'support', null, null, 1_000),
      ...run('four', 'billing', 'other', 'COMPLETED', 3_000),
      event({
        runId: `wide-${'0123456789'.repeat(8)}`,
        agentId: 'wide',
        agentName: 'wide',
        eventType: 'TOOL_CALL',
        payload: { toolName: `a_tool_with_${'a_long_name_'.repeat(8)}` },
      }),
    ])
    const { page, close } = await tacho.open(`${tacho.home}/agents`)
    const cells = async (name: string) =>
      (await page.getByRole('row').filter({ hasText: name }).getByRole('cell').allTextContents()).slice(1, -1)
    await page.getByRole('row').filter({ hasText: 'billing' }).waitFor()
    assert.deepEqual(await cells('support'), ['3', '1', '1 (50 %)', '1', '1 m 00 s', '300', '0.75'])
    await page.keyboard.press('g')
    await page.keyboard.press('e')
    await page.waitForURL('**/sessions')
    await page.getByRole('row').filter({ hasText: 'other' }).waitFor()
    assert.deepEqual(await cells('talk'), ['2', '1', '1 (50 %)', '0', '1 m 00 s', '200', '0.50'])
    await page.getByRole('link', { name: 'talk' }).click()
    await page.waitForURL('**/sessions/talk')
    await page.getByRole('link', { name: 'two' }).waitFor()
    assert.equal(await page.getByRole('link', { name: 'three' }).count(), 0)
    await page.goto(`${tacho.home}/agents`)
    await page.getByRole('row').filter({ hasText: 'billing' }).getByRole('link').click()
    await page.waitForURL('**/agents/billing')
    await page.getByRole('region', { name: 'Newest runs' }).getByRole('link', { name: 'four' }).waitFor()
    await page.getByRole('link', { name: 'All runs' }).click()
    await page.waitForURL('**/runs?agent=billing')
    await page.getByRole('link', { name: 'four' }).waitFor()
    assert.equal(await page.locator('img, #root script').count(), 0)
    await close()
  })

  test('the pages are accessible and fit, light, dark and on a phone', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/agents`)
    for (const name of ['agents', 'sessions']) {
      await page.goto(`${tacho.home}/${name}`)
      await page.getByRole('row').nth(2).waitFor()
      await assertLooks(page, name)
    }
    await page.goto(`${tacho.home}/agents/wide`)
    await page.getByRole('region', { name: 'Tools' }).getByRole('link').waitFor()
    await page.getByRole('region', { name: 'The last 30 days' }).locator('canvas').waitFor()
    await assertLooks(page, 'an agent')
    await page.goto(`${tacho.home}/sessions/talk`)
    await page.getByRole('list', { name: 'Transcript' }).getByRole('link', { name: 'two' }).waitFor()
    await assertLooks(page, 'a session')
    await close()
  })
})
