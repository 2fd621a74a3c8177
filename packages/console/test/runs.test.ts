/** The pages of runs: empty, on real runs, on payloads that mean harm, by keyboard, on a phone, light and dark. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { printable } from '@tacho/contract/shown-text.ts'
import { STALLED_MS } from '@tacho/contract/stalled.ts'
import { REAL_TRANSCRIPTS, withoutRealTranscripts } from '../../cli/test/real-transcripts.ts'
import { runCommand } from '../../cli/test/tacho.ts'
import { newPerson } from '../../server/test/http/operator/browser.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import {
  assertAccessible,
  assertFine,
  assertLooks,
  HARM,
  PHONE,
  startConsole,
  type TestConsole,
} from './setup/console.ts'

const LONG_RUN = 3_000

describe('runs', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  before(async () => {
    tacho = await startConsole()
  })
  after(() => tacho.close())

  const step = (page: Page) => page.getByRole('complementary', { name: 'Step' })

  // First of all: nothing has been recorded yet.
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

  test('what was recorded is text, whatever it looks like', async () => {
    const payloads = {
      USER_INPUT: { text: HARM },
      AGENT_STEP: { text: HARM },
      LLM_CALL: {
        model: HARM,
        messages: [{ role: HARM, content: HARM }],
        output: { role: 'assistant', content: HARM },
      },
      TOOL_CALL: { toolName: HARM, input: { [HARM]: HARM }, output: HARM, error: HARM },
      POLICY_DECISION: { action: HARM, toolName: HARM, policyIds: [HARM] },
      ERROR: { message: HARM },
      [HARM.slice(0, 50)]: { deep: JSON.parse(`${'['.repeat(150)}1${']'.repeat(150)}`), file: 'QUJD'.repeat(20_000) },
    }
    const start = Date.now() - 1_000
    const events = Object.entries(payloads).map(([eventType, payload], at) =>
      event({ runId: HARM, sessionId: HARM, agentName: HARM, label: HARM, eventType, payload, timestamp: start + at }),
    )
    assert.equal((await tacho.service.record(events)).body.accepted, events.length)
    const { page, close } = await tacho.open(`${tacho.home}/runs`)
    await page.getByRole('link', { name: '<img' }).click()
    await page.getByRole('heading', { level: 1, name: '<img' }).waitFor()
    for (const [key, view] of [
      ['c', 'Transcript'],
      ['b', 'Table'],
      ['t', 'Timeline'],
    ] as const) {
      await page.keyboard.press(key)
      await page.getByRole('button', { name: view, pressed: true }).waitFor()
      await page.getByRole('listitem').first().waitFor()
      for (const { eventId } of events) {
        await page.keyboard.press('j')
        await step(page).getByText(String(eventId), { exact: true }).waitFor()
      }
      await page.keyboard.press('Escape')
      await step(page).waitFor({ state: 'detached' })
    }
    assert.equal(await page.locator('img, #root script').count(), 0)
    assert.notEqual(await page.title(), '1')
    await close()
  })

  test('what clients send is text on every page, in every field', async () => {
    const tool = `tool ${HARM}`
    const agentId = `agent ${HARM}`
    const escapes = String.raw`\u0000 \x00 %00 &#0; \u202e`
    const failed = { toolName: tool, error: `${HARM} ${escapes}`, input: { [HARM]: escapes } }
    const hostile = (runId: string) => [
      event({ runId, agentId, agentName: HARM, sessionId: HARM, eventType: 'TOOL_CALL', label: HARM, payload: failed }),
      event({
        runId,
        agentId,
        agentName: HARM,
        sessionId: HARM,
        eventType: 'LLM_CALL',
        label: HARM,
        spanId: HARM,
        schemaVersion: HARM,
        payload: {
          model: HARM,
          output: { role: HARM, content: `data:text/html;base64,${'QUJD'.repeat(60_000)}` },
          deep: JSON.parse(`${'{"a":['.repeat(98)}1${']}'.repeat(98)}`),
        },
      }),
    ]
    const [one, two] = [`${HARM} 1`, `${HARM} 2`]
    assert.equal((await tacho.service.record([...hostile(one), ...hostile(two)])).body.accepted, 4)
    const request = { clientRequestId: HARM, toolName: tool, inputHash: 'ab'.repeat(32), reason: `${HARM} ${escapes}` }
    const named = { runId: one, sessionId: HARM, agentId, policyId: HARM }
    const headers = { 'X-Service-Client-ID': 'client' }
    const asked = await tacho.service.api('/firewall-approvals', { body: { ...request, ...named }, headers })
    assert.equal(asked.status, 201)
    const record = {
      sdkInstanceId: HARM,
      clientRecordId: HARM,
      recordKind: 'DETECTION',
      detectionType: HARM,
      detectedAt: Date.now(),
      payload: { toolName: tool, tools: [HARM], reasonCode: HARM, model: HARM, text: escapes },
      evidence: { [HARM]: HARM, decision: escapes, approvalId: HARM },
    }
    assert.equal((await tacho.service.api('/issue-records', { body: { ...record, ...named } })).status, 202)

    const { page, close } = await tacho.open(tacho.home)
    const assertText = async (where: string) => {
      assert.equal(await page.locator('img, #root script, #root iframe').count(), 0, where)
      assert.notEqual(await page.title(), '1', where)
    }
    const listed = (region: string) => page.getByRole('region', { name: region }).getByRole('link', { name: '<img' })
    await listed('Needs a person').waitFor()
    await listed('Open issues').first().click()
    await page.getByRole('heading', { name: 'Why these are grouped' }).waitFor()
    await page.getByRole('button', { name: 'Show what was reported' }).click()
    await page.getByRole('region', { name: 'Occurrences' }).getByText('Evidence').waitFor()
    await assertText('issue')
    const inPath = encodeURIComponent
    for (const [address, shows] of [
      ['approvals', page.getByRole('link', { name: '<img' })],
      [`runs?tool=${inPath(tool)}&hasErrors=true&columns=run,session,tools,models`, page.getByRole('row').nth(2)],
      [`runs?q=${inPath(HARM.slice(0, 20))}`, page.getByRole('row').nth(2)],
      [`agents/${inPath(agentId)}`, page.getByRole('region', { name: 'Tools' }).getByRole('link')],
      [`sessions/${inPath(HARM)}`, page.getByRole('list', { name: 'Transcript' }).getByRole('listitem').nth(1)],
      [`compare?a=${inPath(one)}&b=${inPath(two)}`, page.getByRole('listitem').nth(1)],
    ] as const) {
      await page.goto(`${tacho.home}/${address}`)
      await shows.first().waitFor()
      await assertText(address)
    }
    await page.goto(`${tacho.home}/approvals`)
    await page.getByRole('link', { name: '<img' }).first().click()
    await page.getByRole('heading', { name: 'The policy that asked' }).waitFor()
    await assertText('approval')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('<img')
    await page.getByRole('option').filter({ hasText: 'Agent' }).first().waitFor()
    await page.getByRole('option').filter({ hasText: 'Open issue' }).first().waitFor()
    await assertText('palette')
    await close()
  })

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
    // The next key goes on from the step that is open.
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
    await page.getByRole('listitem').getByText('blocked: by refund-limit: ask ada').waitFor()
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
    // The head counts all steps before the list has them; the scrubber counts those that are here.
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

  test('filters stand in the address, and finding nothing says why', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/runs`)
    await page.getByRole('combobox', { name: 'Status' }).selectOption('Cancelled')
    await page.waitForURL('**/runs?status=CANCELLED')
    await page.getByRole('heading', { name: 'No run matches' }).waitFor()
    await page.getByRole('button', { name: 'Show all runs' }).click()
    await page.waitForURL('**/runs')
    await page.getByRole('button', { name: 'More filters' }).click()
    const tools = page.getByRole('region', { name: 'Tools, last 7 days' })
    await tools.getByRole('button', { name: /^refund/ }).click()
    await page.waitForURL('**/runs?tool=refund')
    await tools.getByRole('button', { name: /^refund/, pressed: true }).click()
    await page.waitForURL('**/runs')
    await page.getByRole('combobox', { name: 'Tool' }).fill('refund')
    await page.waitForURL('**/runs?tool=refund')
    await page.getByLabel('With errors').check()
    await page.waitForURL('**/runs?tool=refund&hasErrors=true')
    await page.waitForFunction(() => document.querySelectorAll('[aria-label=Runs] [role=row]').length === 2)
    await page.getByRole('row').filter({ hasText: 'trouble' }).waitFor()
    const button = page.getByRole('button', { name: 'Columns' })
    await page.goto(`${tacho.home}/runs`)
    const rows = page.getByRole('table', { name: 'Runs' }).getByRole('row')
    await page.getByRole('combobox', { name: 'Order' }).selectOption('Most errors')
    await page.waitForURL('**/runs?order=failures')
    await rows.nth(1).waitFor()
    await page.getByRole('columnheader', { name: 'Length' }).getByRole('button').click()
    await page.waitForURL('**/runs?order=length')
    await page.locator('[aria-sort=descending]', { hasText: 'Length' }).waitFor()
    await page.getByRole('combobox', { name: 'Status' }).selectOption('Running')
    await page.waitForURL('**/runs?status=RUNNING')
    await page.goto(`${tacho.home}/runs?tool=refund&hasErrors=true`)
    await button.click()
    const [opened, opener] = [
      await page.getByRole('group', { name: 'Columns' }).boundingBox(),
      await button.boundingBox(),
    ]
    assert.ok(opened && opener && opened.y > opener.y, 'the menu opens below its button')
    assert.equal(Math.round(opened.x + opened.width), Math.round(opener.x + opener.width))
    await page.getByRole('group', { name: 'Columns' }).getByLabel('Errors').check()
    await page.getByRole('columnheader', { name: 'Errors' }).waitFor()
    await page.keyboard.press('Escape')
    await page.reload()
    await page.getByRole('row').filter({ hasText: 'trouble' }).getByText('2', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Clear' }).click()
    await page.waitForURL(/runs\?columns=[^&]+$/)
    await page.goto(`${tacho.home}/runs`)
    await page.getByRole('columnheader', { name: 'Errors' }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('trou')
    await page.waitForURL('**/runs?q=trou')
    // The rows of the previous search stay until the new ones are here: the head and one run.
    await page.waitForFunction(() => document.querySelectorAll('[aria-label=Runs] [role=row]').length === 2)
    await page.getByRole('row').filter({ hasText: 'trouble' }).waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'trouble' }).waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('e')
    await page.getByRole('option', { name: /^entire/ }).waitFor()
    const answer = Promise.withResolvers<void>()
    await page.route(/q=exac/, async (route) => {
      await answer.promise
      await route.continue()
    })
    await page.keyboard.type('xac')
    // Enter would open it until the answer is here.
    await page.getByRole('option', { name: /^entire/ }).waitFor({ state: 'detached' })
    answer.resolve()
    await page.getByRole('option', { name: /^exact/ }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'exact' }).waitFor()
    await close()
  })

  test('a row has the question, and the reason or the answer; new runs wait, and the choice stays with its run', async () => {
    const about = { runId: 'asked', agentId: 'two-lines', agentName: 'Two lines' }
    const at = Date.now() - 60_000
    const output = { role: 'assistant', content: 'It arrives on Thursday.' }
    await tacho.service.record([
      event({ ...about, label: 'start', timestamp: at }),
      event({
        ...about,
        eventType: 'USER_INPUT',
        label: 'q',
        payload: { text: `Where is it? ${HARM}` },
        timestamp: at,
      }),
      event({ ...about, eventType: 'LLM_CALL', label: 'call', payload: { model: 'gpt-5', output }, timestamp: at + 1 }),
      event({ ...about, runId: 'older', label: 'an older run', timestamp: at - 1_000 }),
    ])
    const { page, close } = await tacho.open(`${tacho.home}/runs?agent=two-lines`)
    const row = page.getByRole('row').filter({ hasText: 'asked' })
    await row.getByText(`Where is it? ${printable(HARM)}`).waitFor()
    await row.getByText('It arrives on Thursday.').waitFor()
    await page.getByRole('row').filter({ hasText: 'older' }).getByText('an older run').waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.locator('[data-current=true]').filter({ hasText: 'older' }).waitFor()
    await assertLooks(page, 'runs in two lines')
    const error = 'OrderError: no order 7'
    const end = { ...about, eventType: 'SESSION_OUTCOME', label: 'end', payload: { status: 'FAILED', error } }
    await tacho.service.record([event({ ...about, runId: 'newer', label: 'a newer run' }), event(end)])
    // A row follows its run, and stays where it is.
    await row.getByText(error).waitFor()
    assert.equal(await page.getByText('a newer run').count(), 0)
    await page.getByRole('button', { name: '1 new run' }).click()
    await page.getByRole('row').nth(1).getByText('a newer run').waitFor()
    await page.locator('[data-current=true]').filter({ hasText: 'older' }).waitFor()
    const agent = row.getByRole('cell').filter({ hasText: 'Two lines' })
    await page.goto(`${tacho.home}/runs`)
    await agent.hover()
    await agent.getByRole('button', { name: 'Only runs with this agent' }).click()
    await page.waitForURL('**/runs?agent=two-lines')
    await page.getByRole('row').filter({ hasText: 'asked' }).getByText('✕').click()
    await page.waitForURL('**/runs/asked')
    await close()
  })

  test('a cancelled run says why, as its list does; the list shows the reason of a failure in a narrow window', async () => {
    const about = { eventType: 'SESSION_OUTCOME', label: 'end', timestamp: Date.now() - 1_000 }
    const error = 'SIGTERM: The process was ended by SIGTERM.'
    await tacho.service.record([
      event({ ...about, runId: 'narrow-stopped', payload: { status: 'CANCELLED', error } }),
      event({ ...about, runId: 'narrow-failed', payload: { status: 'FAILED', error: 'OrderError: no order 7' } }),
    ])
    const viewport = { width: 700, height: 800 }
    const { page, close } = await tacho.open(`${tacho.home}/runs?q=narrow`, { viewport })
    const reason = page.getByRole('row').filter({ hasText: 'narrow-failed' }).getByText('OrderError: no order 7')
    await reason.waitFor()
    const box = await reason.boundingBox()
    assert.ok(box !== null && box.x + box.width <= viewport.width, JSON.stringify(box))
    const stopped = page.getByRole('row').filter({ hasText: 'narrow-stopped' })
    await stopped.getByText(error).waitFor()
    await stopped.getByRole('link').click()
    await page.getByRole('note', { name: 'Why it was cancelled' }).getByText(error).waitFor()
    await close()
  })

  test('filters and columns are saved as a view, opened, renamed by keyboard and deleted; a viewer opens only', async () => {
    await tacho.service.record([event({ runId: 'kept' })])
    const { page, close } = await tacho.open(`${tacho.home}/runs?q=kept&since=7d&columns=run%2Ccost`)
    const menu = page.getByRole('group', { name: 'Views' })
    const button = page.getByRole('button', { name: 'Views', exact: true })
    await page.getByRole('row').filter({ hasText: 'kept' }).waitFor()
    await button.click()
    await menu.getByRole('button', { name: 'Save this view…' }).click()
    await page.getByRole('dialog', { name: 'Save this view' }).getByLabel('Name').fill(HARM)
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.goto(`${tacho.home}/runs`)
    await button.click()
    await assertFine(page, 'views', 'light')
    await menu.getByRole('button', { name: HARM, exact: true }).click()
    const isOpen = ({ searchParams }: URL) =>
      ['q', 'since', 'columns'].map((one) => searchParams.get(one)).join() === 'kept,7d,run,cost'
    await page.waitForURL(isOpen)
    await page.waitForFunction(() => document.querySelectorAll('[role=columnheader]').length === 2)

    await button.press('Enter')
    const rename = menu.getByRole('button', { name: `Rename ${HARM}`, exact: true })
    await rename.press('Enter')
    const name = page.getByRole('dialog', { name: 'Rename this view' }).getByLabel('Name')
    await name.fill('Kept')
    await name.press('Enter')
    await page.getByRole('dialog').waitFor({ state: 'detached' })

    const viewer = await newPerson(tacho.service, 'views@example.com', 'viewer', null)
    const other = await tacho.open(`${tacho.home}/runs`, { as: viewer, ...PHONE })
    await other.page.getByRole('button', { name: 'Views', exact: true }).click()
    await other.page.getByRole('button', { name: 'Kept', exact: true }).waitFor()
    assert.equal(await other.page.getByRole('group', { name: 'Views' }).getByRole('button').count(), 1)
    await assertFine(other.page, 'views', 'phone')
    await other.close()

    await button.click()
    await menu.getByRole('button', { name: 'Delete Kept', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await button.click()
    await menu.getByText('A view keeps filters and columns under a name').waitFor()
    await close()
  })

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

  test('real runs are accessible and fit, light, dark and on a phone', { skip: withoutRealTranscripts }, async () => {
    await importRealRuns()
    const { page, close } = await tacho.open(tacho.home)
    await page.getByRole('heading', { name: 'Newest runs' }).waitFor()
    await assertLooks(page, 'overview')
    await page.goto(`${tacho.home}/runs?agent=Airline`)
    await page.getByRole('row').nth(3).getByRole('link').click()
    for (const [key, view] of [
      ['t', 'Timeline'],
      ['c', 'Transcript'],
      ['b', 'Steps'],
    ] as const) {
      await page.keyboard.press(key)
      await page.getByRole('list', { name: view }).getByRole('listitem').nth(2).waitFor()
      await assertLooks(page, view)
    }
    await page.keyboard.press('j')
    await step(page).getByText('Event id').waitFor()
    await assertLooks(page, 'step')
    await close()
  })

  let imported: Promise<void> | null = null
  function importRealRuns(): Promise<void> {
    const { url, apiKey, operatorToken } = tacho.service
    const variables = { TACHO_URL: url, TACHO_API_KEY: apiKey, TACHO_OPERATOR_TOKEN: operatorToken }
    const args = ['import', REAL_TRANSCRIPTS, '--agent-name', 'Airline', '--field-outcome', 'reward']
    return (imported ??= runCommand(args, variables).then(({ code, stderr }) => assert.equal(code, 0, stderr)))
  }
})
