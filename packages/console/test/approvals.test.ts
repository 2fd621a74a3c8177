/** Approvals: they come by themselves, are decided by mouse, keyboard and thumb, and tell what followed. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { STALLED_MS } from '@tacho/contract/runs/run-activity.ts'
import type { ApprovalPage } from '@tacho/contract/approvals/operator-approval.ts'
import { newPerson } from '../../server/test/http/people/browser.ts'
import { inputHash as hashOf } from '../../policy/src/input/input-hash.ts'
import { approvalCalls, CLIENT, type ApprovalCalls } from '../../server/test/setup/approval-service.ts'
import { configurationCalls } from '../../server/test/setup/configuration-service.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, HARM, PHONE, startConsole, type TestConsole } from './setup/console.ts'

const INPUT = { to: 'ana.silva@example.com', amount: 120.5, note: HARM }

describe('approvals', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  let calls: ApprovalCalls
  before(async () => {
    tacho = await startConsole()
    calls = approvalCalls(tacho.service)
    const { newPolicy } = await configurationCalls(tacho.service)
    await newPolicy({ policyId: 'transfer-limit', name: 'Transfer limit', action: 'REQUIRE_APPROVAL' })
  })
  afterEach(async () => {
    const path = `/environments/${tacho.service.environmentId}/approvals?status=PENDING`
    const { body } = await tacho.service.operator<ApprovalPage>(path)
    for (const { id } of body.items) await calls.decide(id, 'REJECTED')
  })
  after(() => tacho.close())

  const approvals = () => `${tacho.home}/approvals`
  const list = (page: Page) => page.getByRole('list', { name: 'Waiting approvals' })
  const pane = (page: Page) => page.getByRole('article')

  /** As an agent asks: the step, the decision of its policy with the input, the request. */
  async function ask(runId: string, fields: Record<string, unknown> = {}): Promise<string> {
    const { toolName = 'transfer', input = INPUT } = fields
    const inputHash = fields['inputHash'] ?? hashOf(String(toolName), input)
    const { body, status } = await calls.ask({
      inputHash,
      runId,
      agentId: 'payer',
      policyId: 'transfer-limit',
      policyVersion: '1',
      reason: `Transfer in ${runId}`,
      ...fields,
    })
    assert.equal(status, 201)
    const decided = { action: 'REQUIRE_APPROVAL', toolName, inputHash, approvalId: body.id, input }
    await tacho.service.record([
      event({ runId, eventType: 'USER_INPUT', label: 'Pay the invoice', timestamp: Date.now() - 2_000 }),
      event({ runId, eventType: 'POLICY_DECISION', label: 'transfer', payload: decided, clientId: CLIENT }),
    ])
    return body.id
  }

  async function ran(runId: string, approvalId: string, change: Record<string, unknown> = {}): Promise<void> {
    const payload = { toolName: 'transfer', inputHash: hashOf('transfer', INPUT), approvalId, output: 'ok', ...change }
    await tacho.service.record([event({ runId, eventType: 'TOOL_CALL', label: 'transfer', payload })])
  }

  test('a request appears by itself, is decided by keyboard, and tells what the agent did then', async () => {
    const { page, close } = await tacho.open(approvals())
    await page.getByRole('heading', { name: 'Nothing waits for a decision' }).waitFor()
    await tacho.service.record([event({ runId: 'before', agentId: 'payer', agentName: 'Accounts payable' })])
    const id = await ask('first')
    await list(page).getByText('Transfer in first').waitFor()
    await list(page).getByText('Accounts payable').waitFor()
    await page.waitForFunction(() => document.title.startsWith('(1) '))
    await page.keyboard.press('j')
    await page.waitForURL(`**/approvals/${id}`)
    await pane(page).getByRole('heading', { name: 'Transfer 120.5 · ana.silva@example.com' }).waitFor()
    await pane(page).getByText('Pay the invoice').waitFor()
    await pane(page).getByText('This is the first.').waitFor()
    await pane(page).getByText('Transfer limit').waitFor()
    await page.keyboard.press('e')
    await page.keyboard.type('The invoice is paid by us')
    await page.keyboard.press('Escape')
    await page.keyboard.press('a')
    await page.keyboard.press('Enter')
    await pane(page)
      .getByText(/^.?Approved$/)
      .waitFor()
    await pane(page).getByText('The invoice is paid by us').waitFor()
    await pane(page).getByText('No call of the tool has been recorded since.').waitFor()
    await page.waitForFunction(() => !document.title.startsWith('('))
    await ran('first', id)
    await pane(page).getByText('The tool ran with the approved input.').waitFor()
    const { body } = await calls.read(id)
    assert.deepEqual([body.status, body.decisionReason], ['APPROVED', 'The invoice is paid by us'])
    await close()
  })

  test('the list says what would run in one line, with hidden characters as escapes, and only one line of it', async () => {
    const command = `cat .env ${String.fromCodePoint(0x202e)}gpj\n${'x'.repeat(300)} end`
    const id = await ask('shell', { toolName: 'Bash', input: { command } })
    await ask('file', { toolName: 'Edit', input: { file_path: '/srv/app/main.ts', old_string: 'a', new_string: 'b' } })
    await ask('plain', { toolName: 'wire' })
    const { page, close } = await tacho.open(approvals())
    const row = (text: string) => list(page).getByRole('listitem').filter({ hasText: text })
    await row('Bash').getByText('$ cat .env \\u202egpj\\nxxx').waitFor()
    assert.equal(await row('Bash').getByText('end').count(), 0)
    await row('Edit').getByText('/srv/app/main.ts +1 −1').waitFor()
    await row('wire').getByText('Wire 120.5 · ana.silva@example.com').waitFor()
    const requests: string[] = []
    page.on('request', (request) => requests.push(request.url()))
    await page.reload()
    await row('Bash').getByText('cat .env').waitFor()
    const first = requests.filter((url) => /approvals\/[0-9a-f-]{36}/.test(url))
    assert.ok(first.length <= 3, `a request for each row: ${first.join(' ')}`)
    await assertLooks(page, 'approvals with inputs')
    await page.setViewportSize({ width: 1280, height: 800 })
    await calls.decide(id, 'REJECTED')
    await page.goto(`${approvals()}?show=history`)
    await page.getByRole('list', { name: 'Approvals' }).getByText('cat .env').waitFor()
    await close()
  })

  test('a run that waits for a person is not stalled, however long, and leads to the request', async () => {
    const long = Date.now() - 2 * STALLED_MS
    const paused = { eventType: 'WAITING', label: 'refund waits for a person', payload: { waitingFor: 'approval' } }
    await tacho.service.record([
      event({ runId: 'held', timestamp: long }),
      event({ runId: 'silent', timestamp: long }),
      event({ runId: 'paused', timestamp: long, ...paused }),
    ])
    const { body } = await calls.ask({ runId: 'held', toolName: 'hold' })
    const { page, close } = await tacho.open(`${tacho.home}/runs`)
    const row = (name: string) => page.getByRole('row').filter({ hasText: name })
    await row('silent').getByText('Stalled').waitFor()
    await row('held').getByText('Waiting').waitFor()
    await row('paused').getByText('Waiting').waitFor()
    await page.getByRole('link', { name: 'held' }).click()
    await page.getByRole('link', { name: 'waits for an approval' }).click()
    await page.waitForURL(`**/approvals/${body.id}`)
    await close()
  })

  test('a request shows what earlier ones of its tool led to, and a call that ran otherwise stands out', async () => {
    const rejected = await ask('second')
    await calls.decide(rejected, 'REJECTED', 'Not ours')
    await ran('second', rejected)
    const id = await ask('third')
    const { page, close } = await tacho.open(`${approvals()}/${id}`)
    const reject = page.getByRole('button', { name: 'Reject', exact: true })
    await reject.waitFor()
    await page.keyboard.press('Control+k')
    await page.keyboard.type('reject')
    await page.getByRole('option', { name: 'Reject (Enter decides)' }).waitFor()
    await page.keyboard.press('Enter')
    await page.waitForFunction(() => document.activeElement?.textContent === 'Reject')
    const earlier = page.getByRole('region', { name: 'Earlier requests for this tool' })
    await earlier.getByText('1 approved · 1 rejected').waitFor()
    await earlier.getByText('The tool ran although a person rejected it').waitFor()
    await earlier.getByText('Ran as approved').waitFor()
    await earlier.getByRole('link', { name: 'Not ours' }).click()
    await page.waitForURL(`**/approvals/${rejected}?show=history`)
    await pane(page).getByText('! The tool ran although a person rejected it.').waitFor()
    await close()
  })

  test('several are decided at once, after a list of what will be decided', async () => {
    for (const run of ['a', 'b']) await ask(`many-${run}`)
    const other = await ask('many-c', { toolName: 'mail' })
    const { page, close } = await tacho.open(approvals())
    await page.getByLabel('Mark all 2 of transfer').check()
    await page.keyboard.press('Escape')
    await list(page).getByRole('link', { name: 'mail' }).click()
    // The keys act on the request that is open.
    await page.waitForURL(`**/approvals/${other}`)
    await pane(page).getByText('Transfer in many-c').waitFor()
    await page.keyboard.press('x')
    await page.keyboard.press('d')
    const dialog = page.getByRole('dialog', { name: 'Decide 3 requests' })
    for (const run of ['a', 'b', 'c']) await dialog.getByText(`Transfer in many-${run}`).waitFor()
    // Somebody else is quicker with one of them.
    await calls.decide(other, 'APPROVED')
    await dialog.getByLabel('Reason for all').fill('Not today')
    await dialog.getByRole('button', { name: 'Reject 3' }).click()
    await dialog.getByText('not by you').waitFor()
    assert.equal(await dialog.getByText(/^.?Rejected$/).count(), 2)
    await dialog.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('heading', { name: 'Nothing waits for a decision' }).waitFor()
    await close()
  })

  test('the history is searched, and its address holds the filters', async () => {
    const { page, close } = await tacho.open(approvals())
    await page.getByRole('button', { name: 'History' }).click()
    await page.waitForURL('**/approvals?show=history')
    await page.keyboard.press('/')
    await page.keyboard.type('mail')
    await page.waitForURL('**/approvals?show=history&tool=mail')
    await page.getByLabel('Status').selectOption('Approved')
    await page.getByRole('listitem').nth(1).waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'mail' }).click()
    await pane(page)
      .getByText(/^.?Approved$/)
      .waitFor()
    await page.reload()
    await pane(page)
      .getByText(/^.?Approved$/)
      .waitFor()
    await page.getByLabel('Status').selectOption('Expired')
    await page.getByRole('heading', { name: 'No request matches' }).waitFor()
    await close()
  })

  test('a viewer reads everything and is offered nothing to decide', async () => {
    const id = await ask('seen')
    const viewer = await newPerson(tacho.service, 'viewer@example.com', 'viewer', null)
    const { page, close } = await tacho.open(`${approvals()}/${id}`, { as: viewer })
    await pane(page).getByRole('cell', { name: 'ana.silva@example.com' }).waitFor()
    assert.equal(await page.getByRole('button', { name: /^(Approve|Reject)$/ }).count(), 0)
    assert.equal(await page.getByRole('checkbox').count(), 0)
    await close()
  })

  test('on a phone, a request is one tap away and approved with the thumb', async () => {
    const id = await ask('thumb')
    const { page, close } = await tacho.open(tacho.home, { ...PHONE, hasTouch: true })
    await page.getByRole('link', { name: /^Approvals/ }).tap()
    await list(page).getByRole('link', { name: 'transfer' }).tap()
    const approve = page.getByRole('button', { name: 'Approve' })
    const box = await approve.boundingBox()
    assert.ok(box && box.height >= 44 && box.y > 700 && box.y + box.height <= 844, JSON.stringify(box))
    await approve.tap()
    await pane(page)
      .getByText(/^.?Approved$/)
      .waitFor()
    await page.getByRole('link', { name: 'All approvals' }).tap()
    await page.getByRole('heading', { name: 'Nothing waits for a decision' }).waitFor()
    assert.equal((await calls.read(id)).body.status, 'APPROVED')
    await close()
  })

  test('at 400 % zoom no bar takes the room of the request, and the title names it', async () => {
    const id = await ask('zoomed')
    const { page, close } = await tacho.open(`${approvals()}/${id}`, { viewport: { width: 320, height: 256 } })
    const approve = pane(page).getByRole('button', { name: 'Approve' })
    await approve.waitFor()
    assert.match(await page.title(), /Transfer 120\.5 · .* · Approvals · Tacho$/)
    // Everything moves with the page: nothing stays in front of the request.
    await approve.scrollIntoViewIfNeeded()
    assert.ok(((await page.getByRole('banner').boundingBox())?.y ?? 0) < 0)
    await pane(page).getByRole('heading').first().scrollIntoViewIfNeeded()
    const [bar, box] = [await approve.boundingBox(), page.viewportSize()]
    assert.ok(bar && box && bar.y > box.height)
    await close()
  })

  test('recorded words are text', async () => {
    const fields = { toolName: HARM, reason: HARM, agentId: HARM, policyId: HARM }
    const id = await ask(HARM, fields)
    const { page, close } = await tacho.open(`${approvals()}/${id}`)
    await pane(page).getByText('This workspace has no such version.').waitFor()
    await pane(page).getByText('Pay the invoice').waitFor()
    assert.equal(await page.locator('img, #root script').count(), 0)
    await calls.decide(id, 'REJECTED', HARM)
    await pane(page)
      .getByText(/^.?Rejected$/)
      .waitFor()
    assert.equal(await page.locator('img, #root script').count(), 0)
    await close()
  })

  test('a text cannot lie: what does not show, letters that look like others, and texts that look like numbers', async () => {
    const fields = { toolName: 'r\u0435fund', reason: 'Pay 5\u200b00\u202e now\nand go' }
    const id = await ask('lies', {
      ...fields,
      input: { order: 'ORD-4711', amount: 500, code: '500', to: 'a\u2066b', note: 'one\ntwo' },
    })
    await tacho.service.record([
      event({
        runId: 'lies',
        eventType: 'TOOL_CALL',
        label: 'find_order',
        payload: { toolName: 'find_order', output: { id: 'ORD-4711', total: 500 } },
        timestamp: Date.now() - 3_000,
      }),
    ])
    const { page, close } = await tacho.open(`${approvals()}/${id}`)
    const shown = async (name: string) => (await pane(page).getByRole('region', { name }).innerText()).split('\n')
    await pane(page).getByText('“Pay 5\\u200b00\\u202e now').waitFor()
    await pane(page).getByText('“r\u0435fund”: Latin letters mixed with Cyrillic \u0435 U+0435').waitFor()
    // A text that looks like a number keeps its quotation marks.
    const values = (await shown('Input')).join('\n')
    for (const value of ['✓ 500', '✓ "500"', 'a\\u2066b', 'one\\ntwo']) assert.ok(values.includes(value), values)
    await pane(page).getByText('Details', { exact: true }).click()
    const input = (await pane(page).locator('details').innerText()).split('\n')
    for (const line of ['"amount": 500,', '"code": "500",', '"to": "a\\u2066b",', '"note": "one\\n'])
      assert.ok(
        input.some((each) => each.trim() === line),
        `${line} in ${JSON.stringify(input)}`,
      )
    const depends = pane(page).getByRole('region', { name: 'The result it depends on' })
    await depends.getByRole('link', { name: 'find_order' }).waitFor()
    await depends.getByText('returned ORD-4711, which the input has too.').waitFor()
    await pane(page).getByText('No other request had this input.').waitFor()
    await assertLooks(page, 'approval that would lie')
    await close()
  })

  test('a decision says whether it counted, also when its answer is lost or another person was first', async () => {
    const [lost, late, never] = [await ask('lost'), await ask('late'), await ask('never')]
    await newPerson(tacho.service, 'second@example.com', 'approver', null)
    const { page } = await tacho.open(`${approvals()}/${lost}`)
    await pane(page).getByText('Can also decide: second@example.com, programs with an operator token.').waitFor()
    // The decision arrives, its answer does not.
    await page.route('**/decision', async (route) => {
      await route.fetch()
      await route.abort()
    })
    await page.getByRole('button', { name: 'Approve' }).click()
    await pane(page).getByText('Your decision counts: approved. The answer was lost').waitFor()
    await assertLooks(page, 'approval decided without an answer')
    await page.goto(`${approvals()}/${late}`)
    await page.unroute('**/decision')
    // The page does not know yet that another person decided.
    await page.route('**/decision', async (route) => {
      await calls.decide(late, 'REJECTED', 'Not ours')
      await route.continue()
    })
    await page.getByRole('button', { name: 'Approve' }).click()
    await pane(page)
      .getByText(/Your decision did not count\. .+ rejected it at/)
      .waitFor()
    await page.unroute('**/decision')
    await page.goto(`${approvals()}/${never}`)
    await page.route('**/decision', (route) => route.abort())
    await page.getByRole('button', { name: 'Reject', exact: true }).click()
    await pane(page).getByText('Your decision did not count. The request still waits. Decide again.').waitFor()
    await page.unroute('**/decision')
    await page.getByRole('button', { name: 'Reject', exact: true }).click()
    await pane(page).getByText('Your decision counts: rejected.').waitFor()
    // The browser logs the requests that failed, which fails `close`.
    await page.context().close()
  })

  test('a reason outlives a reload and a person who was first, and the focus goes to what happened', async () => {
    const id = await ask('raced')
    const { page, close } = await tacho.open(`${approvals()}/${id}`)
    await page.getByLabel('Reason').fill('Half of a thought')
    await page.reload()
    await page.getByLabel('Reason').click()
    assert.equal(await page.getByLabel('Reason').inputValue(), 'Half of a thought')
    await calls.decide(id, 'REJECTED', 'Not ours')
    const ended = pane(page).getByRole('alert').filter({ hasText: 'Nothing of yours was sent.' })
    await ended.getByText('“Half of a thought”').waitFor()
    assert.match(await ended.innerText(), /rejected it at /)
    await page.waitForFunction(() => document.activeElement?.getAttribute('role') === 'alert')
    await assertLooks(page, 'approval lost to another person')
    await ended.getByRole('button', { name: 'Done' }).click()
    await ended.waitFor({ state: 'detached' })
    await close()
  })

  test('without network, nothing is sent or kept for later: the page says so, keeps the reason, and the last word counts', async () => {
    const [id, other] = [await ask('offline'), await ask('offline-2', { toolName: 'mail' })]
    const { page } = await tacho.open(`${approvals()}/${id}`, { ...PHONE, hasTouch: true })
    const approve = page.getByRole('button', { name: 'Approve' })
    const reject = page.getByRole('button', { name: 'Reject', exact: true })
    await page.getByLabel('Reason').fill('The invoice is ours')
    await page.context().setOffline(true)
    await approve.tap()
    await pane(page).getByText('Not sent: this device is offline.').waitFor({ timeout: 5_000 })
    assert.deepEqual([await approve.isDisabled(), await reject.isDisabled()], [true, true])
    // Another page, and back.
    await page.getByRole('link', { name: 'All approvals' }).tap()
    await list(page).getByRole('link', { name: 'transfer' }).tap()
    await pane(page).getByText('Not sent: this device is offline.').waitFor()
    assert.deepEqual([await approve.isDisabled(), await reject.isDisabled()], [true, true])
    const sent: string[] = []
    page.on('request', (request) => request.method() !== 'GET' && sent.push(request.url()))
    await page.context().setOffline(false)
    await pane(page).getByText('Your decision did not count. The request still waits. Decide again.').waitFor()
    assert.deepEqual([sent, await page.getByLabel('Reason').inputValue()], [[], 'The invoice is ours'])
    assert.equal((await calls.read(id)).body.status, 'PENDING')
    await reject.tap()
    await pane(page).getByText('Your decision counts: rejected.').waitFor()
    const { body } = await calls.read(id)
    assert.deepEqual([body.status, body.decisionReason], ['REJECTED', 'The invoice is ours'])

    await page.goto(approvals())
    const third = await ask('offline-3')
    await list(page).getByText('Transfer in offline-3').waitFor()
    for (const tool of ['mail', 'transfer']) await page.getByLabel(`Mark ${tool} of`).check()
    await page.getByRole('button', { name: 'Decide 2…' }).tap()
    sent.length = 0
    await page.context().setOffline(true)
    await page.getByRole('button', { name: 'Approve 2' }).tap()
    await page.getByRole('dialog').getByText('not sent: this device is offline').waitFor({ timeout: 5_000 })
    await page.context().setOffline(false)
    await page.getByRole('dialog').getByText('The request still waits. Decide again.').waitFor()
    await page.getByRole('dialog').getByText('It was not sent, because the answer before it was lost.').waitFor()
    const states = [(await calls.read(other)).body.status, (await calls.read(third)).body.status]
    assert.deepEqual([sent, states], [[], ['PENDING', 'PENDING']])
    await page.context().close()
  })

  test('a service that hangs: it says within seconds that nothing is known, and asks before another decision', async () => {
    const [hung, kept] = [await ask('hung'), await ask('hung-2')]
    const { page } = await tacho.open(`${approvals()}/${hung}`)
    const approve = page.getByRole('button', { name: 'Approve' })
    const reject = page.getByRole('button', { name: 'Reject', exact: true })
    await approve.waitFor()
    const release = Promise.withResolvers<void>()
    // The decision is stored late; until then nothing is answered.
    await page.route(`**/approvals/${hung}/decision`, async (route) => {
      await release.promise
      await calls.decide(hung, 'APPROVED')
      await route.abort().catch(() => undefined)
    })
    await page.route(`**/approvals/${hung}`, async (route) => {
      if (route.request().resourceType() === 'document') return route.continue()
      await release.promise
      await route.continue().catch(() => undefined)
    })
    await approve.click()
    await pane(page).getByText('Sending your approval…').waitFor()
    assert.equal(await reject.isDisabled(), true)
    await pane(page).getByText('it is not known whether your approval was saved').waitFor({ timeout: 9_000 })
    assert.deepEqual([await approve.isDisabled(), await reject.isDisabled()], [true, true])
    // The other request can be decided meanwhile.
    await page.goto(`${approvals()}/${kept}`)
    await reject.click()
    await pane(page).getByText('Your decision counts: rejected.').waitFor()
    release.resolve()
    await page.goto(`${approvals()}/${hung}`)
    await pane(page)
      .getByText(/^.?Approved$/)
      .first()
      .waitFor()
    await page.context().close()
  })

  test('a lost decision that the service stores after it was asked counts in the end', async () => {
    const id = await ask('stored-late')
    const { page } = await tacho.open(`${approvals()}/${id}`)
    await page.route('**/decision', (route) => route.abort())
    await page.getByRole('button', { name: 'Approve' }).click()
    await pane(page).getByText('The request still waits. Decide again.').waitFor()
    // The decider of this test is not the person of the page.
    await calls.decide(id, 'APPROVED', 'late')
    await pane(page)
      .getByText(/Your decision did not count\. .+ approved it at/)
      .waitFor()
    await page.context().close()
  })

  test('a part that cannot be read does not say that there is nothing', async () => {
    const id = await ask('unread')
    const { page } = await tacho.open()
    await page.route(/\/(events|event-rows|timeline)\b/, (route) => route.abort())
    await page.goto(`${approvals()}/${id}`)
    const steps = pane(page).getByRole('region', { name: 'Last steps of the run' })
    await steps.getByText('This could not be read.').waitFor()
    assert.equal(await pane(page).getByText('has been recorded').count(), 0)
    await page.context().close()
  })

  test('whether the input is what was asked: calm, doubtful, and loud with a second step that no group decides', async () => {
    const right = await ask('right')
    const wrong = await ask('wrong', {
      inputHash: hashOf('transfer', { to: 'attacker', amount: 99_999 }),
      toolCallId: 'call_7',
    })
    const { page, close } = await tacho.open(`${approvals()}/${right}`)
    await pane(page).getByText('It matches what the agent asked for.').waitFor()
    await page.goto(`${approvals()}/${wrong}`)
    await list(page).getByText('This input does not match what the agent asked for').waitFor()
    await pane(page).getByText('This input DOES NOT MATCH what the agent asked for').waitFor()
    await pane(page).getByText('call_7').waitFor()
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('alert').getByText('The input above does not match what the agent asked for').waitFor()
    assert.equal((await calls.read(wrong)).body.status, 'PENDING')
    await assertLooks(page, 'approval that does not match')
    await page.getByRole('button', { name: 'Not now' }).click()
    // Neither a double click nor a held key is the second step.
    const confirm = page.getByRole('button', { name: 'Approve the input that is not shown' })
    await page.getByRole('button', { name: 'Approve' }).dblclick()
    await confirm.waitFor()
    await page.getByRole('button', { name: 'Not now' }).click()
    await page.keyboard.press('a')
    for (let times = 0; times < 3; times++) await page.keyboard.down('Enter')
    await page.keyboard.up('Enter')
    await confirm.waitFor()
    await page.getByRole('button', { name: 'Not now' }).click()
    for (const mark of await page.getByLabel('Mark transfer of').all()) await mark.check()
    await page.getByRole('button', { name: 'Decide 2…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Approving leaves it out.').waitFor()
    await assertLooks(page, 'approvals of which one does not match')
    await dialog.getByRole('button', { name: 'Approve 1' }).click()
    await dialog.getByRole('button', { name: 'Close' }).click()
    const states = async () => [(await calls.read(right)).body.status, (await calls.read(wrong)).body.status]
    assert.deepEqual(await states(), ['APPROVED', 'PENDING'])
    await page.goto(`${approvals()}/${wrong}`)
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('button', { name: 'Approve the input that is not shown' }).click()
    await pane(page).getByText('Your decision counts: approved.').waitFor()
    assert.deepEqual(await states(), ['APPROVED', 'APPROVED'])
    await close()
  })

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
    await list(page).getByText('Nobody waits for these any more').waitFor()
    await list(page).getByText('withdrawn: the caller did not wait longer').waitFor()
    await list(page).getByText(`under approval ${kept}`).waitFor()
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

  test('the page shows the version of the policy that asked, and that a newer one is drafted', async () => {
    const { newPolicy, pushPolicy } = await configurationCalls(tacho.service)
    await newPolicy({
      policyId: 'versions',
      name: 'Versions',
      action: 'REQUIRE_APPROVAL',
      condition: 'tool.input.amount > 1.0',
    })
    const id = await ask('versions', { policyId: 'versions', policyVersion: '1' })
    await pushPolicy('versions', 'tool.input.amount > 900.0')
    const { page, close } = await tacho.open(`${approvals()}/${id}`)
    const policy = pane(page).getByRole('region', { name: 'The policy that asked' })
    await policy.getByText('tool.input.amount > 1.0').waitFor()
    await policy.getByText('Version 2 is drafted, and not in force.').waitFor()
    assert.equal(await policy.getByText('900').count(), 0)
    await assertLooks(page, 'approval by an older version')
    await calls.decide(id, 'REJECTED')
    await page.goto(`${approvals()}/${id}?show=history`)
    await policy.getByText('tool.input.amount > 1.0').waitFor()
    await close()
  })

  test('the pages are accessible and fit, light, dark and on a phone', async () => {
    await calls.decide(await ask('look-0'), 'REJECTED', 'Not ours')
    const lasting = { timeoutMs: 3_600_000 }
    const ids = [await ask('look-1', lasting), await ask('look-2', lasting)]
    await ask('look-3', { toolName: 'delete_account', timeoutMs: 50_000 })
    const { page, close } = await tacho.open(approvals())
    await list(page).getByText('Transfer in look-2').waitFor()
    await assertLooks(page, 'approvals')
    await page.goto(`${approvals()}/${ids[0]}`)
    await page.getByRole('region', { name: 'Earlier requests for this tool' }).getByRole('listitem').first().waitFor()
    await pane(page).getByText('Transfer limit').waitFor()
    await assertLooks(page, 'approval')
    await page.goto(`${approvals()}?show=history`)
    await page.getByRole('list', { name: 'Approvals' }).getByRole('listitem').first().waitFor()
    await assertLooks(page, 'approval history')
    await page.goto(approvals())
    await page.getByLabel('Mark all 2 of transfer').check()
    await page.getByRole('button', { name: 'Decide 2…' }).click()
    await page.getByRole('dialog').getByText('Transfer in look-1').waitFor()
    await assertLooks(page, 'approvals decided at once')
    await page.getByRole('button', { name: 'Approve 2' }).click()
    await page.getByRole('button', { name: 'Close' }).click()
    await close()
  })
})
