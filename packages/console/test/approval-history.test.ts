/** The history of approvals: withdrawn requests, requests that a later event closed, and expired requests. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inputHash as hashOf } from '../../policy/src/input/input-hash.ts'
import { CLIENT } from '../../server/test/setup/approval-service.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks } from './setup/console.ts'
import { approvalsConsole, INPUT, pane, waitingList } from './setup/approvals.ts'

describe('the history of approvals', { skip: withoutChromium }, () => {
  const { tacho, calls, ask, ran, approvals } = approvalsConsole()

  test('a request whose caller gave up says so, needs no person, and a call that ran before says under which approval', async () => {
    const [gone, kept] = [await ask('gone', { toolCallId: 'call_1' }), await ask('kept', { toolCallId: 'call_2' })]
    const about = (approvalId: string, toolCallId: string) => ({
      toolName: 'transfer',
      toolCallId,
      inputHash: hashOf('transfer', INPUT),
      approvalId,
    })
    const record = (runId: string, eventType: string, payload: object) =>
      tacho.service.record([event({ runId, eventType, label: 'transfer', payload, clientId: CLIENT })])
    await record('gone', 'APPROVAL_WITHDRAWN', { ...about(gone, 'call_1'), reason: 'timeout' })
    await calls.decide(kept, 'APPROVED')
    await record('kept', 'TOOL_CALL', { ...about(kept, 'call_2'), outcome: 'returned', output: 'ok' })
    const again = await ask('kept', { toolCallId: 'call_2' })
    const { page, close } = await tacho.open(approvals())
    await waitingList(page).getByText('Nobody waits for these any more').waitFor()
    await waitingList(page).getByText('withdrawn: the caller did not wait longer').waitFor()
    await waitingList(page).getByText(`under approval ${kept}`).waitFor()
    await page.waitForFunction(() => document.title.startsWith('(1) '))
    await assertLooks(page, 'approvals that nobody waits for')
    await page.setViewportSize({ width: 1280, height: 800 })
    await page.goto(`${approvals()}/${again}`)
    await pane(page)
      .getByText(/This very call ran .+ ago under approval .+ and returned/)
      .waitFor()
    await page.goto(`${approvals()}/${gone}`)
    await pane(page).getByText('Nobody waits for this decision any more').waitFor()
    await assertLooks(page, 'approval that nobody waits for')
    await page.goto(tacho.home)
    await page.getByRole('link', { name: '1 waiting', exact: true }).waitFor()
    await close()
  })

  test('closed requests in hindsight: what became of each, by outcome and time, with links to the request and its step', async () => {
    const session = { sessionId: 'hindsight' }
    const asked = (toolName: string) => ask('hindsight', { toolName, ...session })
    const call = (toolName: string, approvalId: string, change: object = {}) =>
      ran('hindsight', approvalId, { toolName, inputHash: hashOf(toolName, INPUT), ...change })
    const [early, anyway, failed, other, good, none] = [
      await asked('early'),
      await asked('anyway'),
      await asked('broken'),
      await asked('other'),
      await asked('good'),
      await asked('none'),
    ]
    const unknown = await ask('hindsight', { toolName: 'unknown', runId: null, ...session })
    await call('early', early)
    for (const id of [early, failed, good, unknown]) await calls.decide(id, 'APPROVED')
    for (const id of [anyway, other, none]) await calls.decide(id, 'REJECTED')
    await call('anyway', anyway)
    await call('broken', failed, { output: undefined, error: 'broke' })
    await call('other', '', { approvalId: undefined, inputHash: hashOf('other', { amount: 1 }) })
    await call('good', good)
    const { page } = await tacho.open(approvals())
    await page.getByRole('button', { name: 'In hindsight' }).click()
    await page.waitForURL('**/approvals?show=hindsight')
    await page.getByLabel('Session').fill('hindsight')
    await page.waitForURL('**/approvals?show=hindsight&session=hindsight')
    const hindsight = page.getByRole('list', { name: 'Approvals in hindsight' })
    const row = (tool: string) => hindsight.getByRole('listitem').filter({ hasText: tool })
    for (const [tool, word, sentence] of [
      ['early', 'Ran before the decision', 'Approved. It ran before a person decided.'],
      ['anyway', 'Ran anyway', 'Rejected. It ran although it was rejected or had expired.'],
      ['broken', 'Failed afterwards', 'Approved. It was approved, ran and failed.'],
      ['other', 'Ran with another input', 'Rejected. It did not run, but the same tool ran later with another input.'],
      ['good', 'Ran', 'Approved. It was approved and ran.'],
      ['none', 'Did not run', 'Rejected. It did not run.'],
      ['unknown', 'Not known', 'Its run is not recorded'],
    ] as const) {
      await row(tool).getByText(word).first().waitFor()
      await row(tool).getByText(sentence).waitFor()
    }
    // The list shows all sessions until the rows of this one arrive.
    await hindsight.getByRole('listitem').nth(7).waitFor({ state: 'detached' })
    assert.equal(await hindsight.getByRole('listitem').count(), 7)
    await assertLooks(page, 'approvals in hindsight')
    await page.getByLabel('What became of it').selectOption('Failed afterwards (1)')
    await page.waitForURL('**/approvals?show=hindsight&session=hindsight&outcome=failed')
    await page.getByText('1 of the 7: it was approved, ran and failed.').waitFor()
    assert.equal(await hindsight.getByRole('listitem').count(), 1)
    await page.getByRole('link', { name: 'broken' }).click()
    await page.waitForURL(`**/approvals/${failed}?show=hindsight&session=hindsight&outcome=failed`)
    await pane(page).getByText('It failed.').waitFor()
    await row('broken').getByRole('link', { name: 'Its step' }).click()
    await page.waitForURL('**/runs/hindsight?step=*')
    await page.goto(`${approvals()}?show=hindsight&session=hindsight&to=2020-01-01T00:00:00Z`)
    await page.getByRole('heading', { name: 'No closed request matches' }).waitFor()
    await page.getByLabel('Asked').selectOption('Last hour')
    await row('good').waitFor()
    await page.route('**/approvals/hindsight?*', (route) => route.abort())
    await page.goto(`${approvals()}?show=hindsight&tool=good`)
    await page.getByRole('alert').getByText('The server does not answer').waitFor()
    // The browser logs the request that failed, which fails `close`.
    await page.context().close()
  })

  test('requests that nobody answered are counted on the overview and on the page of their policy', async () => {
    for (const run of ['late-1', 'late-2']) await ask(run, { timeoutMs: 1_000 })
    const { page, close } = await tacho.open(tacho.home)
    await page.getByText('nobody answered 2 requests').waitFor()
    await page.getByRole('link', { name: '2 unanswered in 7 days' }).waitFor()
    await assertLooks(page, 'overview with unanswered requests')
    await page.goto(`${tacho.home}/policies/transfer-limit`)
    await page.getByRole('link', { name: '2 expired undecided' }).click()
    await page.waitForURL('**/approvals?show=history&status=EXPIRED&policy=transfer-limit')
    await close()
  })
})
