/** Agents and sessions: their newest runs summed up, each leading to its runs. And the search over payloads. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { SearchHitPage } from '@tacho/contract/runs/search.ts'
import { newPerson } from '../../server/test/http/people/browser.ts'
import { eventually } from '../../server/test/setup/eventually.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, HARM, PHONE, pressBoth, startConsole, type TestConsole } from './setup/console.ts'

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
    await page.goto(`${tacho.home}/sessions`)
    await page.getByRole('heading', { name: 'No session in this time' }).waitFor()
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
      (await page.getByRole('row').filter({ hasText: name }).getByRole('cell').allInnerTexts()).slice(1)
    await page.getByRole('row').filter({ hasText: 'billing' }).waitFor()
    assert.deepEqual((await cells('support')).slice(0, -1), [
      '3',
      '1',
      '1 (50 %)',
      '1',
      '300',
      '$0.75',
      '$0.25',
      '–',
      '–',
    ])
    await page.getByRole('combobox', { name: 'Order' }).selectOption('Most failed runs')
    await page.waitForURL('**/agents?order=failed')
    await page.getByRole('searchbox', { name: 'Agent' }).fill('bill')
    await page.getByRole('row').filter({ hasText: 'support' }).waitFor({ state: 'detached' })
    await page.keyboard.press('Escape')
    await pressBoth(page, 'g', 'e')
    await page.waitForURL('**/sessions')
    await page.getByRole('row').filter({ hasText: 'other' }).waitFor()
    assert.deepEqual(await cells('talk'), ['2', '1', '1 (50 %)', '0', '200', '$0.50'])
    await page.getByRole('link', { name: 'talk' }).click()
    await page.waitForURL('**/sessions/talk')
    await page.getByRole('link', { name: 'two' }).waitFor()
    assert.equal(await page.getByRole('link', { name: 'three' }).count(), 0)
    const phone = await tacho.open(`${tacho.home}/agents`, PHONE)
    const table = phone.page.getByRole('table', { name: 'Agents' })
    await table.getByRole('row').filter({ hasText: 'billing' }).waitFor()
    const hidden = await table.evaluate(({ parentElement: box }) => box && box.scrollWidth - box.clientWidth)
    assert.equal(hidden, 0, 'what the agents cost, and its change, is in sight on a phone')
    await phone.close()
    await page.goto(`${tacho.home}/agents`)
    await page.getByRole('row').filter({ hasText: 'billing' }).getByRole('link').first().click()
    await page.waitForURL('**/agents/billing')
    await page.getByRole('region', { name: 'Newest runs' }).getByTitle('four').waitFor()
    await page.getByRole('link', { name: 'All runs' }).click()
    await page.waitForURL('**/runs?agent=billing')
    await page.getByRole('link', { name: 'four' }).waitFor()
    assert.equal(await page.locator('img, #root script').count(), 0)
    await close()
  })

  test('the page of an agent says which clients lose events, how many and why, and leads to those runs', async () => {
    const lossy = { runId: 'lossy', agentId: 'lossy', agentName: 'Lossy', clientId: `web ${HARM}` }
    const dropped = { queue_full: [3, now] }
    await tacho.service.record([event({ ...lossy, n: 'abcde1' }), event({ ...lossy, n: 'abcde9.', dropped })])
    const { page, close } = await tacho.open(`${tacho.home}/agents/lossy`)
    const part = page.getByRole('region', { name: 'Missing events' })
    await part.getByText('7 of 9 events, 1 run').waitFor()
    await part.getByText(/^the client dropped 3 at .* because its queue was full, no reason is known for 4$/).waitFor()
    assert.equal(await page.locator('img, #root script').count(), 0)
    await part.getByRole('link', { name: 'Runs with missing events' }).click()
    await page.waitForURL(/runs\?agent=lossy&completeness=GAPS/)
    await page.getByRole('link', { name: 'lossy' }).first().waitFor()
    await page.goto(`${tacho.home}/agents/billing`)
    await part.getByText('No event of this time is known to be missing.').waitFor()
    await close()
  })

  test('an agent is renamed and archived; archived ones are shown on demand', async () => {
    await tacho.service.record(run('kept', 'put-away', null, 'COMPLETED', 4_000))
    const { page, close } = await tacho.open(`${tacho.home}/agents/put-away`)
    const more = page.getByRole('button', { name: 'More', exact: true })
    await more.click()
    await page.getByRole('button', { name: 'Rename…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('textbox').fill('Tidy name')
    await dialog.getByRole('button', { name: 'Rename' }).click()
    await page.getByRole('heading', { name: 'Tidy name' }).waitFor()
    const problem = { type: 'about:blank', title: 'Conflict', status: 409, code: 'conflict', detail: 'It is locked' }
    const body = JSON.stringify({ ...problem, requestId: 'refused' })
    await page.route('**/archive', (route) =>
      route.fulfill({ status: 409, contentType: 'application/problem+json', body }),
    )
    await more.click()
    await page.getByRole('button', { name: 'Archive' }).click()
    const refusal = page.getByRole('alert').filter({ hasText: 'It is locked.' })
    await refusal.waitFor()
    await page.unroute('**/archive')
    await more.click()
    const archived = page.waitForResponse((response) => response.url().endsWith('/archive') && response.ok())
    await page.getByRole('button', { name: 'Archive' }).click()
    await archived
    await refusal.waitFor({ state: 'detached' })
    await page.goto(`${tacho.home}/agents`)
    const row = page.getByRole('row').filter({ hasText: 'Tidy name' })
    await page.getByRole('button', { name: 'Show archived' }).click()
    await row.getByText('Archived').waitFor()
    await page.getByRole('button', { name: 'Hide archived' }).click()
    await row.waitFor({ state: 'detached' })
    await close()
  })

  test('search is switched on by an admin, finds a step by its payload, marks the hit and leads to the step', async () => {
    await tacho.service.record([
      event({ runId: 'refunded', payload: { text: `Please refund order-4711 ${HARM}` } }),
      event({ runId: 'refunded', eventId: 'other', payload: { text: 'Nothing to see' } }),
    ])
    const viewer = await newPerson(tacho.service, 'search@example.com', 'viewer', null)
    const asViewer = await tacho.open(`${tacho.home}/search`, { as: viewer })
    await asViewer.page.getByRole('heading', { name: 'Search is off in development' }).waitFor()
    await asViewer.page.getByText('An admin of this workspace can switch it on.').waitFor()
    assert.equal(await asViewer.page.getByRole('button', { name: /Switch/ }).count(), 0)
    await asViewer.close()

    const { page, close } = await tacho.open(`${tacho.home}/search`)
    await page.getByRole('button', { name: 'Switch search on' }).waitFor()
    await assertLooks(page, 'search off')
    // The first query switches the search on. The query stays, and gets its answer once the index has the step.
    await page.getByLabel('Search payloads').fill('refund')
    await page.getByRole('button', { name: 'Switch on and search' }).click()
    await page.waitForURL(/search\?q=refund/)
    await page.getByRole('list', { name: 'Steps found' }).getByText('refunded').waitFor()
    await page.goto(`${tacho.home}/search`)
    await page.getByRole('heading', { name: 'Find a step by what it says' }).waitFor()
    await assertLooks(page, 'search help')
    const find = `/environments/${tacho.service.environmentId}/search`
    await eventually(async () => {
      const { body } = await tacho.service.operator<SearchHitPage>(`${find}?q=refund`)
      return body.items.length === 1
    }, 'the index to hold the step')
    await page.keyboard.press('/')
    await page.keyboard.type('refund "order 4711')
    await page
      .getByRole('alert')
      .getByText(/quote that is not closed/)
      .waitFor()
    await page.keyboard.type('"')
    const found = page.getByRole('list', { name: 'Steps found' }).getByRole('listitem')
    await found.getByText('refunded').waitFor()
    await page.waitForURL(/search\?q=/)
    assert.equal(await found.locator('mark').first().textContent(), 'refund')
    assert.equal(await page.locator('img, #root script').count(), 0)
    await assertLooks(page, 'search')
    await page.keyboard.press('Escape')
    await page.keyboard.press('j')
    await page.locator('[data-current=true]').waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/runs\/refunded\?step=/)
    await page.getByRole('complementary', { name: 'Step' }).getByText('Please refund').first().waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: /^Page/ }).fill('nothing')
    await page.getByRole('option', { name: 'Search payloads for “nothing”' }).click()
    await found.locator('mark').getByText('Nothing').waitFor()
    await page.getByLabel('Search payloads').fill('absent')
    await page.getByRole('heading', { name: 'Nothing found' }).waitFor()

    // Messages of users come before newer prompts, and equal prompts are shown once.
    const prompt = { label: 'System prompt', payload: { text: 'Vouchers are for members' } }
    const wrote = { eventType: 'USER_INPUT', label: 'Hello', payload: { text: 'Where is my vouchers code?' } }
    await tacho.service.record([
      event({ runId: 'asked', ...wrote, timestamp: Date.now() - 60_000 }),
      ...['one', 'two', 'three'].map((runId) => event({ runId: `prompted-${runId}`, ...prompt })),
    ])
    await eventually(async () => {
      const { body } = await tacho.service.operator<SearchHitPage>(`${find}?q=vouchers`)
      return body.items.length === 4
    }, 'the index to have the prompts')
    await page.getByLabel('Search payloads').fill('vouchers')
    const written = page.getByRole('list', { name: 'Written by users' }).getByRole('listitem')
    await written.getByText('Where is my vouchers code?').waitFor()
    await found.getByText('Vouchers are for members').waitFor()
    assert.deepEqual([await written.count(), await found.count()], [1, 1])
    await page.getByRole('button', { name: 'The same text 2 times more' }).click()
    await page.getByRole('list', { name: 'Steps with the same text' }).getByRole('link').nth(1).waitFor()
    await assertLooks(page, 'search repeated')
    // A query that names a type is sent unchanged.
    await page.getByLabel('Search payloads').fill('vouchers type:user_input')
    await found.getByText('Where is my vouchers code?').waitFor()
    assert.equal(await written.count(), 0)
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
    await page.getByRole('region', { name: 'Last 30 days' }).locator('canvas').waitFor()
    await assertLooks(page, 'an agent')
    await page.goto(`${tacho.home}/sessions/talk`)
    await page.getByRole('list', { name: 'Transcript' }).getByRole('link', { name: 'two' }).waitFor()
    await assertLooks(page, 'a session')
    await close()
  })
})
