/** The pages of runs: empty, by keyboard, live, light and dark; the list, harmful texts, and real runs. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Locator } from 'playwright-core'
import { STALLED_MS } from '@tacho/contract/runs/run-activity.ts'
import { event } from '../../server/test/setup/service.ts'
import { testHarmfulTexts } from './runs/harmful-texts.ts'
import { testRunList } from './runs/list.ts'
import { testRealRuns } from './runs/real-runs.ts'
import { step } from './runs/step.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertAccessible, assertLooks, startConsole, type TestConsole } from './setup/console.ts'

const LONG_RUN = 3_000

describe('runs', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  before(async () => {
    tacho = await startConsole()
  })
  after(() => tacho.close())

  // This test comes first, because nothing is recorded yet.
  test('an empty environment says what will be here and how to get it', async () => {
    const { page, close } = await tacho.open()
    await page.getByRole('link', { name: 'Get started' }).last().click()
    await page.getByText('Waiting for the first event…').waitFor()
    await page.getByRole('button', { name: 'Create a key' }).click()
    const key = await page.getByLabel('API key').textContent()
    assert.match(key ?? '', /^tacho_/)
    assert.ok((await page.getByLabel('A curl line').textContent())?.includes(key ?? '?'))
    await page.getByRole('rowheader', { name: 'Vercel AI SDK' }).waitFor()
    await assertAccessible(page, 'get started')
    const { body } = await tacho.service.record([event({ runId: 'first', label: 'Hello' })], key ?? '')
    assert.equal(body.accepted, 1)
    await page.getByRole('link', { name: 'first' }).click()
    await page.getByRole('heading', { name: 'first' }).waitFor()
    await close()
  })

  testHarmfulTexts(() => tacho)

  test('the payload is shown as it was sent, to the last digit', async () => {
    const sent = '{"big": 9007199254740993, "a":1.0,"a":-0 , "text":"\\u003cb\\u003e"}'
    const { payload: _, ...fields } = event({ runId: 'exact', eventId: 'exact-1' })
    await tacho.service.record(`[${JSON.stringify(fields).slice(0, -1)},"payload":${sent}}]`)
    const { page, close } = await tacho.open(`${tacho.home}/runs/exact?step=exact-1`)
    await page.getByRole('button', { name: 'Raw' }).click()
    await page.getByText(sent).waitFor()
    await close()
  })

  test('problems lead to their step, and the address holds everything', async () => {
    const steps = [
      event({ runId: 'trouble', eventType: 'USER_INPUT', payload: { text: 'Refund it' } }),
      event({
        runId: 'trouble',
        eventType: 'TOOL_CALL',
        label: 'refund',
        payload: { toolName: 'refund', error: 'The bank answered 503\n    at pay (pay.ts:7)' },
      }),
      event({
        runId: 'trouble',
        eventType: 'POLICY_DECISION',
        label: 'pay',
        payload: { action: 'BLOCK', toolName: 'pay' },
      }),
      event({ runId: 'trouble', eventType: 'ERROR', label: 'It broke', payload: { message: 'It broke' } }),
    ].map((one, index) => ({ ...one, timestamp: Date.now() - 10_000 + index * 1_000 }))
    await tacho.service.record(steps)
    const { page, close } = await tacho.open(`${tacho.home}/runs/trouble`)
    await page
      .getByRole('listitem')
      .filter({ hasText: 'refund' })
      .getByText(/failed: The bank answered 503$/)
      .waitFor()
    const chips = page.getByRole('group', { name: 'Problems' })
    await chips.getByText('pay blocked').click()
    await step(page).getByRole('heading', { name: 'pay' }).waitFor()
    await page.keyboard.press(']')
    await step(page).getByRole('heading', { name: 'It broke' }).waitFor()
    await page.keyboard.press('[')
    // The next key continues from the open step.
    await step(page).getByRole('heading', { name: 'pay' }).waitFor()
    await page.keyboard.press('[')
    await step(page).getByRole('heading', { name: 'refund' }).waitFor()
    const colourOf = (text: Locator) => text.evaluate((element) => getComputedStyle(element).color)
    const red = await colourOf(page.getByRole('listitem').filter({ hasText: 'refund' }).getByText('failed'))
    assert.equal(await colourOf(step(page).getByText('503').first()), red)
    await page.keyboard.press('b')
    await page.getByRole('list', { name: 'Steps' }).getByText('failed: The bank answered 503').waitFor()
    await page.keyboard.press('Control+k')
    await page.keyboard.type('as transcript')
    await page.getByRole('option', { name: 'Show as transcript' }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Transcript', pressed: true }).waitFor()
    await page.keyboard.press('b')
    await page.reload()
    await step(page).getByRole('heading', { name: 'refund' }).waitFor()
    await page.getByRole('button', { name: 'Table', pressed: true }).waitFor()
    await page.getByRole('searchbox', { name: 'Search in the run' }).fill('broke')
    await page.getByText('1 of 4 steps').waitFor()
    await assertAccessible(page, 'a run with problems')
    await close()
  })

  test('a crashed run says why in the list and at its top, and one key shows its causes and its stack', async () => {
    const stack = 'TimeoutError: no answer after 5 s\n    at getOrder (orders.ts:7)'
    const causes = [{ type: 'Error', message: 'connect ECONNREFUSED' }]
    const exception = { type: 'TimeoutError', message: 'no answer after 5 s', stack, causes }
    const asked = [{ function: { name: 'refund_payment', arguments: '{}' } }]
    const blocked = { action: 'BLOCK', toolName: 'refund_payment', policyIds: ['refund-limit'], reason: 'ask ada' }
    const about = { runId: 'crashed', agentId: 'support-bot', agentName: 'Support bot' }
    const steps = [
      event({
        ...about,
        eventType: 'LLM_CALL',
        label: 'gpt-5',
        payload: { output: { content: null, tool_calls: asked } },
      }),
      event({ ...about, eventType: 'POLICY_DECISION', label: 'decision', payload: blocked }),
      event({ ...about, eventType: 'SESSION_OUTCOME', label: 'failed', payload: { status: 'FAILED', exception } }),
    ].map((one, index) => ({ ...one, timestamp: Date.now() - 10_000 + index * 1_000 }))
    await tacho.service.record(steps)
    const { page, close } = await tacho.open(`${tacho.home}/runs?status=FAILED`)
    const row = page.getByRole('row').filter({ hasText: 'crashed' })
    await row.getByText('TimeoutError: no answer after 5 s').waitFor()
    await assertLooks(page, 'failed runs')
    await row.getByRole('link').click()
    const why = page.getByRole('note', { name: 'Why it failed' })
    await why.getByText('TimeoutError: no answer after 5 s').waitFor()
    await why.getByText('because Error: connect ECONNREFUSED').waitFor()
    await page.getByRole('listitem').getByText('asks for refund_payment').first().waitFor()
    await page.getByRole('listitem').getByText('blocked by refund-limit: ask ada').waitFor()
    await page.keyboard.press('e')
    await step(page).getByText('at getOrder (orders.ts:7)').waitFor()
    await step(page).getByText('Error: connect ECONNREFUSED').waitFor()
    await assertLooks(page, 'a crashed run')
    await close()
  })

  test('a tool that started and never ended is a problem, in every view, once the run has ended', async () => {
    const call = (eventType: string, label: string, spanId: string) =>
      event({ runId: 'lost', eventType, label, spanId, payload: { toolName: label, input: { order: 7 } } })
    const steps = [
      call('TOOL_START', 'lookup', 'a'),
      call('TOOL_CALL', 'lookup', 'a'),
      call('TOOL_START', 'refund', 'b'),
    ].map((one, index) => ({ ...one, timestamp: Date.now() - 10_000 + index * 1_000 }))
    await tacho.service.record(steps)
    const { page, close } = await tacho.open(`${tacho.home}/runs/lost`)
    await page.getByText('3 steps').last().waitFor()
    assert.equal(await page.getByText('never ended').count(), 0, 'it may still run')
    const outcome = event({
      runId: 'lost',
      eventType: 'SESSION_OUTCOME',
      label: 'failed',
      payload: { status: 'FAILED' },
    })
    await tacho.service.record([outcome])
    const rows = page.getByRole('listitem').filter({ hasText: 'never ended' })
    for (const view of ['t', 'c', 'b']) {
      await page.keyboard.press(view)
      await rows.filter({ hasText: 'refund' }).waitFor()
      assert.equal(await rows.count(), 1)
    }
    await page.getByRole('group', { name: 'Problems' }).getByText('refund started, never ended').click()
    await step(page).getByText('Started, never ended: the run ended first').waitFor()
    await assertAccessible(page, 'a tool that never ended')
    await close()
  })

  test('a running run goes on by itself, keeps the step that is selected, and is stalled after a quarter of an hour', async () => {
    await tacho.service.record([
      event({ runId: 'live', eventId: 'live-1', label: 'One' }),
      event({ runId: 'quiet', timestamp: Date.now() - STALLED_MS - 60_000 }),
    ])
    const { page, close } = await tacho.open(`${tacho.home}/runs?q=quiet`)
    await page.getByRole('row').filter({ hasText: 'quiet' }).getByText('Stalled').waitFor()
    await page.getByRole('combobox', { name: 'Status' }).selectOption('Stalled')
    await page.waitForURL(/status=STALLED/)
    await page.getByRole('row').filter({ hasText: 'quiet' }).getByText('Stalled').waitFor()
    await page.getByRole('combobox', { name: 'Status' }).selectOption('Running')
    await page.waitForURL(/status=RUNNING/)
    await page.goto(`${tacho.home}/runs?status=STALLED`)
    await page.getByRole('row').filter({ hasText: 'quiet' }).waitFor()
    assert.equal(await page.getByRole('row').filter({ hasText: 'live' }).count(), 0)
    await page.getByRole('link', { name: 'quiet' }).click()
    await page.getByText(/no event for 1[6-9] m/).waitFor()
    await tacho.service.record([event({ runId: 'quiet' })])
    await page.getByText(/^● ?Running$/).waitFor()
    await page.goto(`${tacho.home}/runs/live?step=live-1`)
    await step(page).getByRole('heading', { name: 'One' }).waitFor()
    await tacho.service.record([
      event({ runId: 'live', label: 'Two' }),
      event({ runId: 'live', label: 'Done', eventType: 'SESSION_OUTCOME', payload: { status: 'COMPLETED' } }),
    ])
    await page.getByRole('listitem').filter({ hasText: 'Done' }).waitFor()
    await page.getByText('Completed').first().waitFor()
    await step(page).getByRole('heading', { name: 'One' }).waitFor()
    await close()
  })

  test('what is in the page does not grow with the run', async () => {
    const start = Date.now() - 60_000
    for (let at = 0; at < LONG_RUN; at += 100) {
      const batch = Array.from({ length: 100 }, (_, i) =>
        event({ runId: 'long', label: `step ${at + i}`, timestamp: start + at + i }),
      )
      await tacho.service.record(batch)
    }
    const { page, close } = await tacho.open(`${tacho.home}/runs/long`)
    // The head counts all steps of the run, and the scrubber only the loaded ones. Wait for the latter.
    await page.locator(`[role=slider][aria-valuemax="${LONG_RUN}"]`).focus()
    await page.keyboard.press('End')
    await step(page).getByRole('heading', { name: 'step 2999' }).waitFor()
    await page.getByRole('listitem').filter({ hasText: 'step 2999' }).waitFor()
    const nodes = await page.evaluate(() => document.querySelectorAll('*').length)
    assert.ok(nodes < 1_500, `${nodes} nodes`)
    await close()
  })

  test('a run says what of it arrived, and those with missing events are found', async () => {
    const dropped = { queue_full: [3, Date.now()] }
    const end = { eventType: 'SESSION_OUTCOME', payload: { status: 'COMPLETED' } }
    await tacho.service.record([
      event({ runId: 'holes', n: 'abcde1' }),
      event({ runId: 'holes', n: 'abcde5.', dropped, ...end }),
      event({ runId: 'entire', n: 'abcde1.', ...end }),
    ])
    const { page, close } = await tacho.open(`${tacho.home}/runs/holes`)
    await page
      .getByText(/^3 of 5 events are missing: the client dropped them at .* because its queue was full$/)
      .waitFor()
    await assertAccessible(page, 'a run with missing events')
    await page.goto(`${tacho.home}/runs/entire`)
    await page.getByText('complete', { exact: true }).waitFor()
    await page.goto(`${tacho.home}/runs`)
    await page.getByRole('button', { name: 'More filters' }).click()
    await page.getByLabel('With missing events').check()
    await page.waitForURL('**/runs?completeness=GAPS')
    await page.getByRole('row').filter({ hasText: 'holes' }).waitFor()
    await page.waitForFunction(() => document.querySelectorAll('[aria-label=Runs] [role=row]').length === 2)
    await close()
  })

  // These tests list the runs of the tests above.
  testRunList(() => tacho)

  test('what does not exist is not found', async () => {
    for (const address of [
      `${tacho.home}/runs/nothing`,
      `${tacho.service.url}/w/none/none`,
      `${tacho.service.url}/x`,
    ]) {
      const { page, close } = await tacho.open(address)
      await page.getByRole('heading', { name: 'There is nothing here' }).waitFor()
      await close()
    }
  })

  testRealRuns(() => tacho)
})
