/** Each state of a call is shown in its run: in the list of steps and in the step, linked in both directions. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { event } from '../../server/test/setup/service.ts'
import { step } from './runs/step.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, HARM, startConsole, type TestConsole } from './setup/console.ts'

const CUT = '{"order": 7, "amount": 5'

describe('the life of a call', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  before(async () => {
    tacho = await startConsole()
  })
  after(() => tacho.close())

  let clock = Date.now() - 60_000
  const of = (runId: string, eventType: string, label: string, payload: Record<string, unknown>) =>
    event({ runId, eventId: `${runId} ${label} ${(clock += 100)}`, eventType, label, payload, timestamp: clock })

  /** Records an answer with four calls, of which one runs, and then another call with the same id. */
  async function record(runId: string): Promise<void> {
    const model = (label: string, toolCalls: object[]) => of(runId, 'LLM_CALL', label, { model: 'small-1', toolCalls })
    const never = (toolCallId: string, label: string, more: object) =>
      of(runId, 'TOOL_CALL', label, { toolName: label, toolCallId, outcome: 'never_ran', ...more })
    const events = [
      model('first answer', [
        { id: 'call_cut', name: 'refund', arguments: CUT, problem: 'cut' },
        { id: 'call_unknown', name: HARM, problem: 'unknown_tool' },
        { id: 'call_held', name: 'transfer' },
      ]),
      never('call_cut', 'refund', { reasonCode: 'cut', arguments: CUT, error: { message: 'The answer was cut.' } }),
      never('call_unknown', 'refnd', { reasonCode: 'unknown_tool', error: { message: 'There is no tool refnd.' } }),
      of(runId, 'POLICY_DECISION', 'transfer held', {
        action: 'REQUIRE_APPROVAL',
        toolName: 'transfer',
        toolCallId: 'call_held',
      }),
      of(runId, 'APPROVAL_WITHDRAWN', 'transfer withdrawn', {
        toolName: 'transfer',
        toolCallId: 'call_held',
        reason: 'run_ended',
      }),
      of(runId, 'HANDOFF', 'hand off', { from: 'Triage', to: 'Refunds' }),
      model('second answer', [{ id: 'call_cut', name: 'refund' }]),
      of(runId, 'TOOL_START', 'refund', { toolName: 'refund', toolCallId: 'call_cut', agent: 'Refunds' }),
      of(runId, 'TOOL_CALL', 'refund', {
        toolName: 'refund',
        toolCallId: 'call_cut',
        outcome: 'cancelled',
        error: { message: 'aborted' },
        agent: 'Refunds',
      }),
      of(runId, 'TOOL_CALL', 'edit', { toolName: 'edit', outcome: 'did_not_report' }),
      of(runId, 'SESSION_OUTCOME', 'done', { status: 'COMPLETED' }),
    ]
    assert.equal((await tacho.service.record(events)).body.accepted, events.length)
  }

  const row = (page: Page, text: string) => page.getByRole('listitem').filter({ hasText: text })

  test('the list of steps says what became of each call', async () => {
    await record('states')
    const { page, close } = await tacho.open(`${tacho.home}/runs/states`)
    await row(page, 'never ran: the answer of the model was cut: The answer was cut.').waitFor()
    await row(page, 'never ran: unknown tool: There is no tool refnd.').waitFor()
    await row(page, 'nobody waits for the approval any more: run ended').waitFor()
    await row(page, 'from Triage to Refunds').waitFor()
    await row(page, 'by Refunds: cancelled').waitFor()
    await row(page, 'did not report back').waitFor()
    await row(page, 'asks for refund').first().waitFor()
    assert.equal(await row(page, 'failed').count(), 0)
    await assertLooks(page, 'run with all states of calls')
    await close()
  })

  test('at 1366 pixels, the names of steps and the costs are whole, and what nobody recorded is not zero', async () => {
    const failed = {
      model: 'gpt-4.1-mini',
      error: { message: `The provider answered 503: ${'no capacity, '.repeat(30)}` },
    }
    const usage = { promptTokens: 20, completionTokens: 3, totalTokens: 23 }
    await tacho.service.record([
      of('wide', 'LLM_CALL', 'gpt-4.1-mini', { ...failed, usage, cost: 0.000123456 }),
      of('wide', 'LLM_CALL', 'gpt-4.1-mini', failed),
      of('wide', 'SESSION_OUTCOME', 'FAILED', { status: 'FAILED' }),
      of('no-usage', 'LLM_CALL', 'gpt-4.1-mini', { model: 'no-such-model', output: 'Hello' }),
    ])
    const { page, close } = await tacho.open(`${tacho.home}/runs`, { viewport: { width: 1366, height: 768 } })
    const timeline = page.getByRole('list', { name: 'Timeline' })
    const isWhole = (place: Locator) =>
      place.first().evaluate((element) => {
        const cell = element.closest('[role=cell], button')
        const range = document.createRange()
        range.selectNodeContents(element)
        return cell !== null && range.getBoundingClientRect().right <= cell.getBoundingClientRect().right + 1
      })
    await page.getByText('$0.000123').waitFor()
    assert.ok(await isWhole(page.getByText('$0.000123')))
    const unused = page.getByRole('row').filter({ hasText: 'no-usage' })
    assert.equal(await unused.getByText('unknown', { exact: true }).count(), 2)
    assert.equal(await unused.getByText(/^(\$?0)$/).count(), 0)
    await page.goto(`${tacho.home}/runs/wide`)
    await page.getByText('The provider answered 503').first().waitFor()
    await timeline.getByText('gpt-4.1-mini').first().waitFor()
    assert.ok(await isWhole(timeline.getByText('gpt-4.1-mini')))
    await timeline.getByText('gpt-4.1-mini').last().click()
    await step(page).waitFor()
    assert.ok(await isWhole(timeline.getByText('gpt-4.1-mini')))
    await step(page).getByText('tokens unknown').waitFor()
    await assertLooks(page, 'run beside a step')
    await close()
  })

  test('a model call and the calls that it asked for lead to each other; an id that comes again begins anew', async () => {
    await record('links')
    const { page, close } = await tacho.open(`${tacho.home}/runs/links`)
    await row(page, 'first answer').getByRole('button').first().click()
    const asked = step(page).getByRole('region', { name: 'Calls it asked for' })
    await asked.getByText('never ran: the answer of the model was cut').waitFor()
    await asked.getByText('held for an approval').waitFor()
    await asked.getByText('nobody waits for the approval any more').waitFor()
    // `cancelled` belongs to the second call with this id.
    assert.equal(await asked.getByText('cancelled').count(), 0)
    await step(page).getByText(CUT).first().waitFor()
    assert.equal(await page.locator('img, #root script').count(), 0)
    await assertLooks(page, 'model call with its calls')
    await asked.getByRole('link', { name: 'refund' }).first().click()
    const life = step(page).getByRole('region', { name: 'The life of this call' })
    await life.getByText('call_cut').waitFor()
    await step(page).getByText('Arguments as received').waitFor()
    await step(page).getByText(CUT).waitFor()
    await assertLooks(page, 'call that never ran')
    await life.getByRole('link', { name: 'first answer' }).click()
    await asked.waitFor()
    await row(page, 'by Refunds: cancelled').getByRole('button').first().click()
    await life.getByRole('link', { name: 'second answer' }).waitFor()
    assert.equal(await life.getByRole('link', { name: 'first answer' }).count(), 0)
    await life.getByText('started').waitFor()
    await close()
  })
})
