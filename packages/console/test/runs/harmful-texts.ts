/** Harmful texts are shown as plain text. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { IssuePage } from '@tacho/contract/issues/issue.ts'
import { event } from '../../../server/test/setup/service.ts'
import { HARM, type TestConsole } from '../setup/console.ts'
import { step } from './step.ts'

export function testHarmfulTexts(tacho: () => TestConsole): void {
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
    assert.equal((await tacho().service.record(events)).body.accepted, events.length)
    const { page, close } = await tacho().open(`${tacho().home}/runs`)
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
    assert.equal((await tacho().service.record([...hostile(one), ...hostile(two)])).body.accepted, 4)
    const request = { clientRequestId: HARM, toolName: tool, inputHash: 'ab'.repeat(32), reason: `${HARM} ${escapes}` }
    const named = { runId: one, sessionId: HARM, agentId, policyId: HARM }
    const headers = { 'X-Service-Client-ID': 'client' }
    const asked = await tacho().service.api('/firewall-approvals', { body: { ...request, ...named }, headers })
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
    assert.equal((await tacho().service.api('/issue-records', { body: { ...record, ...named } })).status, 202)

    const { page, close } = await tacho().open(tacho().home)
    const assertText = async (where: string) => {
      assert.equal(await page.locator('img, #root script, #root iframe').count(), 0, where)
      assert.notEqual(await page.title(), '1', where)
    }
    const listed = (region: string) => page.getByRole('region', { name: region }).getByRole('link', { name: '<img' })
    await listed('Needs a person').waitFor()
    await listed('Open issues').first().waitFor()
    await assertText('overview')
    // The tool's own failures are an issue too, whose records may have no evidence.
    const path = `/environments/${tacho().service.environmentId}/issues?detectionType=${encodeURIComponent(HARM)}`
    const [issue] = (await tacho().service.operator<IssuePage>(path)).body.items
    await page.goto(`${tacho().home}/issues/${issue?.id}`)
    await page.getByRole('heading', { name: 'Why these are grouped' }).waitFor()
    await page.getByRole('button', { name: 'Show what was reported' }).first().click()
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
      await page.goto(`${tacho().home}/${address}`)
      await shows.first().waitFor()
      await assertText(address)
    }
    await page.goto(`${tacho().home}/approvals`)
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
}
