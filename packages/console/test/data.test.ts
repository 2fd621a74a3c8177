/** Prices, alerts, budgets, retention, erasure and export of an environment; creating, renaming and archiving it. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import Database from 'better-sqlite3'
import type { SearchHitPage } from '@tacho/contract/runs/search.ts'
import { newPerson, type Browser as Person } from '../../server/test/http/people/browser.ts'
import { eventually } from '../../server/test/setup/eventually.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, HARM, startConsole, type TestConsole } from './setup/console.ts'

const HOUR_MS = 3_600_000

/** Four runs that started within the hour: one failed, two completed, one is running. */
const nightShift = (hour: number) =>
  ['failed', 'good', 'better', 'running'].flatMap((name) => {
    const of = { runId: `night ${name}`, agentName: 'Night shift', timestamp: hour + 60_000 }
    const call = event({ ...of, eventType: 'LLM_CALL', payload: { model: 'small', cost: 0, latency: 2_000 } })
    if (name === 'running') return [call]
    const status = name === 'failed' ? 'FAILED' : 'COMPLETED'
    return [call, event({ ...of, eventType: 'SESSION_OUTCOME', payload: { status } })]
  })

describe('costs and data', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  let viewer: Person
  before(async () => {
    tacho = await startConsole({ webhookNetworks: '127.0.0.0/8' })
    viewer = await newPerson(tacho.service, 'viewer@example.com', 'viewer', null)
    const call = (eventId: string, model: string) =>
      event({
        eventId,
        runId: 'estimated',
        eventType: 'LLM_CALL',
        label: `chat ${model}`,
        payload: { model, usage: { promptTokens: 1_000_000 } },
      })
    await tacho.service.record([call('known', 'gpt-4o'), call('unknown', 'our-llama')])
  })
  after(() => tacho.close())

  const settings = (section: string) => `${tacho.home}/settings/${section}`

  test('a missing cost is estimated and marked, with its price table; a model without a price gets one', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/runs/estimated?step=known`)
    // The other call of the run has no price.
    await page.getByText(/^cost at least \$2\.50, estimated with genai-prices [\d.]+$/).waitFor()
    const inspector = page.getByRole('complementary', { name: 'Step' })
    await inspector.getByText(/cost ≈ \$2\.50, estimated with genai-prices/).waitFor()
    await page.keyboard.press('j')
    await inspector.getByText(/cost unknown: this model has no price/).waitFor()
    await page.goto(`${tacho.home}/runs`)
    await page
      .getByRole('row')
      .filter({ hasText: 'estimated' })
      .getByTitle(/genai-prices.*1 call without/)
      .waitFor()
    await page.goto(`${tacho.home}/usage`)
    await page.getByText(/Estimated with the prices of genai-prices .* 1 call without a cost/).waitFor()
    await page.getByRole('link', { name: 'Prices' }).click()
    await page.getByRole('button', { name: 'Set a price for our-llama' }).click()
    await page.getByRole('dialog').getByLabel('Input').fill('0.5')
    await page.getByRole('dialog').getByLabel('Output').fill('1')
    await assertLooks(page, 'price dialog')
    await page.keyboard.press('Enter')
    const row = page.getByRole('table', { name: 'Prices for a million tokens' }).getByRole('row')
    await row.filter({ hasText: 'our-llama' }).getByText('0.5', { exact: true }).waitFor()
    await page.getByText('Every model that was called has a price').waitFor()
    await assertLooks(page, 'settings prices')
    await page.goto(`${tacho.home}/runs/estimated`)
    await page.getByText(/^cost ≈ \$3\.00, estimated with/).waitFor()
    await page.goto(settings('prices'))
    await row.getByRole('button', { name: 'Remove our-llama' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('button', { name: 'Set a price for our-llama' }).waitFor()
    await close()
  })

  test('an alert fires, a budget shows what is used, and both are deleted', async () => {
    const { page, close } = await tacho.open(settings('alerts'))
    await page.getByRole('heading', { name: 'development has no alert yet' }).waitFor()
    const notSent = page.getByText('No webhook sends alerts')
    await notSent.waitFor()
    await page.keyboard.press('n')
    const dialog = page.getByRole('dialog')
    // A disabled button says what is missing.
    await dialog.getByText('Give it a name first.').waitFor()
    await dialog.getByLabel('Name').fill(`High cost ${HARM}`)
    await dialog.getByLabel('Kind').selectOption('High cost')
    await dialog.getByText('Set “Cost in US dollars” first.').waitFor()
    await dialog.getByLabel('Cost').fill('1')
    await dialog.getByLabel('Holds for').fill('0')
    await assertLooks(page, 'alert dialog')
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'New alert' }).click()
    await dialog.getByLabel('Name').fill('This month')
    await dialog.getByLabel('Kind').selectOption('Budget')
    await dialog.getByLabel('Amount').fill('3')
    await page.keyboard.press('Enter')
    const row = (name: string) => page.getByRole('table', { name: 'Alerts' }).getByRole('row').filter({ hasText: name })
    await row('High cost').getByText('Firing').waitFor()
    await row('This month').getByText('83 % used').waitFor()
    await row('This month').getByText('$2.50 of $3.00').waitFor()
    assert.equal(await page.locator('img, #root script').count(), 0)
    await assertLooks(page, 'settings alerts')
    const body = { url: 'http://127.0.0.1:9/', events: ['alert.firing'] }
    const made = await tacho.service.operator(`/environments/${tacho.service.environmentId}/webhooks`, { body })
    assert.equal(made.status, 201)
    const isRead = page.waitForResponse(/[/]webhooks[?]/)
    await page.reload()
    await isRead
    await row('High cost').waitFor()
    await notSent.waitFor({ state: 'detached' })
    const hour = (Math.floor(Date.now() / HOUR_MS) - 7) * HOUR_MS
    await tacho.service.record(nightShift(hour))
    await page.goto(tacho.home)
    const urgent = page.getByRole('list', { name: 'Alerts' })
    await urgent.getByText('High cost').waitFor()
    const bars = page.getByRole('list', { name: 'Runs per hour' }).getByRole('link')
    const bar = bars.and(page.getByRole('link', { name: /, 4 runs: 1 failed, 2 completed, 1 running$/ }))
    await bar.waitFor()
    const agent = page
      .getByRole('table', { name: 'Agents, last 24 hours' })
      .getByRole('row')
      .filter({ hasText: 'Night shift' })
    // A latency is at most 1 % from the exact one, which is 2 s.
    await agent.filter({ hasText: /^Night shift433 %(1[.]9|2[.]0) s/ }).waitFor()
    await assertLooks(page, 'overview with alerts')
    await agent.getByTitle('1 of 3 ended runs failed').click()
    await page.waitForURL(/runs[?].*status=FAILED/)
    await page.waitForFunction(() => document.querySelectorAll('[role=row] a').length === 1)
    await page.getByRole('link', { name: 'night failed' }).waitFor()
    await page.goBack()
    await bar.click()
    await page.waitForURL(/runs[?]from=.*&to=/)
    await page.waitForFunction(() => document.querySelectorAll('[role=row] a').length === 4)
    await page.goBack()
    await urgent.getByRole('link', { name: 'This month' }).click()
    const act = async (of: string, name: string) => {
      await row(of)
        .getByRole('button', { name: /^Actions/ })
        .click()
      await page.getByRole('button', { name, exact: true }).click()
    }
    await act('This month', 'Send a test')
    await page.getByText('No webhook subscribes to this event').waitFor()
    await act('This month', 'Change…')
    await dialog.getByLabel('Amount').fill('10')
    await page.keyboard.press('Enter')
    await row('This month').getByText('25 % used').waitFor()
    for (const name of ['High cost', 'This month']) {
      await act(name, 'Delete…')
      await dialog.getByRole('button', { name: 'Delete' }).click()
      await row(name).waitFor({ state: 'detached' })
    }
    await close()
  })

  test('retention says what it would remove, removes it, and keeps a pinned run', async () => {
    await tacho.service.record([event({ runId: 'old' }), event({ runId: 'pinned' })])
    const db = new Database(path.join(tacho.service.directory, 'tacho.db'))
    const long = Date.now() - 100 * 86_400_000
    db.prepare(
      `UPDATE runs SET started_at = ?, last_event_at = ?, received_at = ? WHERE run_id IN ('old', 'pinned')`,
    ).run(long, long, long)
    db.close()
    const { page, close } = await tacho.open(`${tacho.home}/runs/pinned`)
    await page.getByRole('button', { name: 'More' }).click()
    await page.getByRole('button', { name: /^Pin/ }).click()
    await page.getByText('Pinned', { exact: true }).waitFor()
    await assertLooks(page, 'a pinned run')
    await page.goto(settings('data'))
    await page.getByRole('region', { name: 'Kept for' }).getByText('Nothing is set').waitFor()
    await page.getByRole('button', { name: 'Change…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Nothing in development would be removed now.').waitFor()
    await dialog.getByLabel('Payloads').fill('91')
    await dialog.getByLabel('Runs', { exact: true }).fill('90')
    await dialog
      .getByRole('alert')
      .getByText(/payloadDays/)
      .waitFor()
    await dialog.getByLabel('Payloads').fill('')
    await dialog.getByText(/^1 run with 1 event/).waitFor()
    await assertLooks(page, 'retention dialog')
    await dialog.getByRole('button', { name: 'Save and remove' }).click()
    await page.getByRole('region', { name: 'Kept for' }).getByText('Set for development').waitFor()
    await page.getByText(/In all: 1 run removed/).waitFor()
    await page.getByRole('button', { name: 'Follow the workspace again…' }).click()
    await dialog.getByRole('button', { name: 'Follow the workspace' }).click()
    await page.getByRole('region', { name: 'Kept for' }).getByText('Nothing is set').waitFor()
    await page.goto(`${tacho.home}/runs/old`)
    await page.getByRole('heading', { name: 'There is nothing here' }).waitFor()
    await page.goto(`${tacho.home}/runs/pinned`)
    await page.getByRole('button', { name: 'More' }).press('Enter')
    await page.getByRole('button', { name: /^Unpin/ }).press('Enter')
    await page.getByText('Pinned', { exact: true }).waitFor({ state: 'detached' })
    await close()
  })

  test('what is erased is counted before, gone after, and has a receipt that does not name it', async () => {
    const sessionId = `talk ${HARM}`
    await tacho.service.record([
      event({ runId: 'said', sessionId }),
      event({ runId: 'said too', sessionId }),
      event({ runId: 'run of a user', payload: { customer: { id: 'user-4711' } } }),
    ])
    const { page, close } = await tacho.open(`${tacho.home}/sessions/${encodeURIComponent(sessionId)}`)
    await page.getByRole('list', { name: 'Transcript' }).getByRole('link', { name: 'said too' }).waitFor()
    await page.getByRole('button', { name: 'More' }).click()
    await page.getByRole('button', { name: 'Erase this session…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('2 runs with 2 events').waitFor()
    await dialog.getByText(/^2 runs still go on: what they record from now on is stored as a new run\./).waitFor()
    await dialog.getByLabel('Reason').fill('Request 118')
    await assertLooks(page, 'erase dialog')
    // An act that cannot be undone has the warning colour.
    const act = dialog.getByRole('button', { name: 'Erase forever' })
    await act.and(page.locator('.bg-red')).click()
    const receipts = page.getByRole('table', { name: 'Erasures' }).getByRole('row')
    await receipts.filter({ hasText: 'Request 118' }).getByText('Done').waitFor()
    assert.equal(await page.getByText('talk').count(), 0)
    await page.getByRole('button', { name: 'Erase…' }).click()
    await dialog.getByLabel('Id').fill('user-4711')
    await dialog.getByText('Search is off, so the fields that have this id cannot be suggested.').waitFor()
    // A mistyped id is not erased by one Enter.
    await dialog.getByText(/^! No run matches\./).waitFor()
    assert.equal(await act.isDisabled(), true)
    await dialog.getByLabel(/^Erase it all the same/).check()
    await act.and(page.locator(':enabled')).waitFor()
    await assertLooks(page, 'erase dialog without a match')
    await dialog.getByLabel('Id').fill('user-4712')
    await dialog
      .getByLabel(/^Erase it all the same/)
      .and(page.locator(':not(:checked)'))
      .waitFor()
    assert.equal(await act.isDisabled(), true)
    await page.keyboard.press('Escape')
    const find = `/environments/${tacho.service.environmentId}/search`
    await tacho.service.operator(`${find}/settings`, { method: 'POST', body: { enabled: true } })
    await eventually(async () => {
      const { body } = await tacho.service.operator<SearchHitPage>(`${find}?q=4711`)
      return body.items?.length === 1
    }, 'the index to have the id')
    await page.reload()
    await page.getByRole('button', { name: 'Erase…' }).click()
    // Proxies and servers log addresses.
    const addresses: string[] = []
    page.on('request', (request) => addresses.push(decodeURIComponent(request.url())))
    await dialog.getByLabel('Id').fill('user-4711')
    const fields = dialog.getByRole('group', { name: 'Fields with this id' })
    await fields.getByText('In the 1 step with this id it is in').waitFor()
    await fields.getByRole('button', { name: 'customer.id · 1' }).click()
    assert.equal(await dialog.getByLabel('Payload field').inputValue(), 'customer.id')
    assert.ok(addresses.length > 2)
    assert.deepEqual(
      addresses.filter((address) => address.includes('4711')),
      [],
    )
    // Fields are searched only after the order, so the dialog shows a lower bound and never an exact number.
    await dialog.getByText(/^at least \d+ runs? with/).waitFor()
    await dialog.getByText(/must be searched in addition/).waitFor()
    await assertLooks(page, 'erase dialog with fields')
    await dialog.getByRole('button', { name: 'Erase forever' }).click()
    await receipts.filter({ hasText: 'User' }).getByText('1 run, 1 event').waitFor()
    await receipts.getByText('1 of these had not ended: what it records after it is refused.').waitFor()
    await assertLooks(page, 'settings data')
    // A row opens the whole receipt, at its own address.
    await receipts.getByRole('button', { name: 'Receipt: User' }).click()
    const receipt = page.getByRole('dialog', { name: 'Receipt of an erasure' })
    await receipt.getByText('customer.id').waitFor()
    await receipt.getByText(/^printf '%s' '[0-9a-f-]{36} user the-erased-id' \| sha256sum$/).waitFor()
    await assertLooks(page, 'receipt')
    await page.reload()
    await receipt.getByText(/^1, of which 1 had not ended; \d+ runs? searched$/).waitFor()
    await page.keyboard.press('Escape')
    await page.waitForURL(/settings\/data$/)
    await page.goto(`${tacho.home}/runs`)
    await page.getByRole('link', { name: 'estimated' }).waitFor()
    assert.equal(await page.getByRole('link', { name: /^said|^run of/ }).count(), 0)
    await close()
  })

  test('the runs of a filter are exported as a file, and so is the environment', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/runs?status=RUNNING&since=24h`)
    const saved = async (menu: string, name: string, called: RegExp) => {
      await page.getByRole('button', { name: menu, exact: true }).click()
      const link = page.getByRole('link', { name, exact: true })
      const [file] = await Promise.all([page.waitForEvent('download'), link.click()])
      assert.match(file.suggestedFilename(), called)
      return readFile(await file.path(), 'utf8')
    }
    const some = await saved('Export', 'JSON Lines, to import again', /^tacho-.*\.jsonl$/)
    assert.match(some, /^[^\n]*"filter":\{[^}]*"status":"RUNNING"/)
    assert.match(some, /\n\{"type":"end"[^\n]*\n?$/)
    const table = await saved('Export', 'Events as Parquet', /\.parquet$/)
    assert.match(table, /^PAR1/)
    await page.goto(settings('data'))
    // Wait for the sections above: when their data arrives, the button moves, and a click at its old place would miss.
    await page.getByRole('heading', { name: 'Export', exact: true }).waitFor()
    await page.waitForFunction(() => document.querySelector('main .animate-pulse') === null)
    const all = await saved('Export', 'JSON Lines, to import again', /^tacho-.*\.jsonl$/)
    assert.match(all, /"runId":"estimated"/)
    await page.goto(`${tacho.home}/runs/estimated`)
    const file = await saved('More', 'Save as a page', /\.html$/)
    assert.match(file, /estimated/)
    await close()
  })

  test('environments and workspaces are made, renamed, archived and restored; a name that exists is refused in place', async () => {
    const { page, close } = await tacho.open(settings('environments'))
    await page.getByRole('button', { name: 'New environment' }).waitFor()
    await page.keyboard.press('n')
    await page.keyboard.type('development')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').getByRole('alert').waitFor()
    await page.getByRole('textbox', { name: 'Name' }).fill('staging')
    await page.keyboard.press('Enter')
    const environments = page.getByRole('table', { name: 'Environments' })
    await environments.getByRole('link', { name: 'staging' }).waitFor()
    const act = async (of: string, name: string) => {
      await page.getByRole('button', { name: `Actions for ${of}`, exact: true }).click()
      await page.getByRole('button', { name, exact: true }).click()
    }
    await act('staging', 'Archive…')
    await page.getByRole('dialog').getByRole('button', { name: 'Archive' }).click()
    const archived = environments.getByRole('row').filter({ hasText: 'staging' }).getByText('Archived')
    await archived.waitFor()
    // The dialog closes after the header has loaded the new names.
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    assert.deepEqual(await page.getByLabel('Environment').getByRole('option').allTextContents(), ['development'])
    await act('staging', 'Rename…')
    await page.getByRole('textbox', { name: 'Name' }).fill('old staging')
    await page.keyboard.press('Enter')
    await environments.getByText('old staging').waitFor()
    await assertLooks(page, 'settings archived')
    await act('old staging', 'Delete…')
    await page
      .getByRole('dialog')
      .getByRole('button', { name: /^Delete in/ })
      .click()
    await environments.getByText('To be deleted').waitFor()
    await act('old staging', 'Restore')
    await environments.getByRole('link', { name: 'old staging' }).waitFor()
    await act('development', 'Rename…')
    await page.getByRole('textbox', { name: 'Name' }).fill('dev')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/w/default/dev/settings/environments')
    await act('dev', 'Rename…')
    await page.getByRole('textbox', { name: 'Name' }).fill('development')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/w/default/development/settings/environments')
    await page.getByRole('button', { name: 'New workspace' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('acme')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/w/acme/development')
    await page.goto(settings('environments'))
    await act('acme', 'Archive…')
    await page.getByRole('dialog').getByRole('button', { name: 'Archive' }).click()
    const acme = page.getByRole('table', { name: 'Workspaces' }).getByRole('row').filter({ hasText: 'acme' })
    await acme.getByText('Archived').waitFor()
    await page.getByLabel('Workspace', { exact: true }).waitFor({ state: 'detached' })
    await act('acme', 'Restore')
    await acme.getByText('Archived').waitFor({ state: 'detached' })
    await close()
  })

  test('a viewer is offered no act that would be refused', async () => {
    const { page, close } = await tacho.open(settings('prices'), { as: viewer })
    await page.getByRole('table', { name: 'Models without a price' }).getByText('our-llama').waitFor()
    await page.getByRole('link', { name: 'Alerts' }).click()
    await page.getByText('An admin of this workspace can create one.').waitFor()
    const acts = page.getByRole('button', { name: /^(New|Set|Change|Delete|Remove|Switch|Erase|Export|Pin)/ })
    assert.equal(await acts.count(), 0)
    await page.getByRole('link', { name: 'Prices' }).click()
    await page.getByRole('heading', { level: 1, name: 'Prices' }).waitFor()
    assert.equal(await acts.count(), 0)
    await page.getByRole('link', { name: 'Data', exact: true }).click()
    await page.getByRole('table', { name: 'Erasures' }).waitFor()
    await page.getByText(/^Payloads (are not indexed|can be searched)/).waitFor()
    assert.equal(await acts.count(), 0)
    for (const address of ['/runs/estimated', '/agents/agent']) {
      await page.goto(tacho.home + address)
      await page.getByText('Copy id').waitFor()
      assert.equal(await acts.count(), 0, address)
    }
    await page.goto(`${tacho.home}/runs`)
    await page.getByRole('link', { name: 'estimated' }).waitFor()
    assert.equal(await acts.count(), 0)
    await close()
  })
})

describe('an environment without anything', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  before(async () => {
    tacho = await startConsole({ webhookNetworks: '127.0.0.0/8' })
  })
  after(() => tacho.close())

  test('takes five alerts, and makes the webhook that sends them on the way', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/settings/alerts`)
    await page.getByRole('button', { name: 'Five to start with…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Alerts to start with' })
    await dialog.getByLabel('Tell by').selectOption('Slack')
    await dialog.getByLabel('Incoming webhook').fill('http://192.0.2.1/refused')
    await assertLooks(page, 'starter alerts')
    await dialog.getByRole('checkbox', { name: /Runs stall/ }).uncheck()
    // If the server refuses the address, the chosen options stay.
    await dialog.getByRole('button', { name: 'Create 4' }).click()
    await dialog
      .getByRole('alert')
      .getByText(/^Incoming webhook: /)
      .waitFor()
    await dialog.getByLabel('Incoming webhook').fill('http://127.0.0.1:9/slack')
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'detached' })
    const rows = page.getByRole('table', { name: 'Alerts' }).getByRole('row')
    for (const name of ['Many runs fail', 'Cost doubled', 'A request waits', 'Budget of the month'])
      await rows.filter({ hasText: name }).waitFor()
    assert.equal(await rows.filter({ hasText: 'Runs stall' }).count(), 0)
    // The page reads the webhooks again after the dialog has closed.
    await page.getByText('No webhook sends alerts').waitFor({ state: 'detached' })
    // The webhook has only the messages of these alerts, and no signing secret, because Slack could not check one.
    assert.equal(await page.getByText(/^whsec_/).count(), 0)
    await page.goto(`${tacho.home}/settings/webhooks`)
    await page.getByRole('link', { name: 'http://127.0.0.1:9/slack' }).click()
    await page.getByText('alert.firing', { exact: true }).waitFor()
    for (const [event, times] of [
      ['budget.reached', 1],
      ['approval.requested', 0],
    ] as const)
      assert.equal(await page.getByText(event, { exact: true }).count(), times)
    assert.equal(await page.getByRole('button', { name: 'New secret…' }).count(), 0)
    await page.getByRole('button', { name: 'Remove…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('heading', { name: 'No webhook yet' }).waitFor()
    await close()
  })

  test('a webhook added from the alerts has their events alone, and its secret is shown only if the receiver checks it', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/settings/alerts`)
    const dialog = page.getByRole('dialog')
    const add = page.getByRole('button', { name: 'Add a webhook' })
    await add.click()
    const chosen = dialog.getByRole('group', { name: 'Events' }).getByRole('checkbox', { checked: true })
    await dialog.getByRole('checkbox', { name: /^alert.firing/, checked: true }).waitFor()
    assert.equal(await chosen.count(), 3)
    await dialog.getByRole('radio', { name: /^Slack/ }).check()
    // The error names the field by its label.
    await dialog.getByLabel('Address').fill('http://192.0.2.1/refused')
    await dialog.getByRole('button', { name: 'Create webhook' }).click()
    await dialog
      .getByRole('alert')
      .getByText(/^Address: /)
      .waitFor()
    await dialog.getByLabel('Address').fill('http://127.0.0.1:9/chat')
    await dialog.getByRole('button', { name: 'Create webhook' }).click()
    await dialog.waitFor({ state: 'detached' })
    await add.waitFor({ state: 'detached' })
    await page.goto(`${tacho.home}/settings/webhooks`)
    await page.getByRole('button', { name: 'New webhook' }).click()
    await dialog.getByLabel('Address').fill('http://127.0.0.1:9/program')
    await dialog.getByRole('button', { name: 'Create webhook' }).click()
    await dialog.getByText(/^whsec_/).waitFor()
    await close()
  })
})
