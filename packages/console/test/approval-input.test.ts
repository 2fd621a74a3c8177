/** The shown input of a request: plain texts, spoofing texts, and whether it is the input that was requested. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inputHash as hashOf } from '../../policy/src/input/input-hash.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, HARM } from './setup/console.ts'
import { approvalsConsole, pane, waitingList } from './setup/approvals.ts'

describe('the input of an approval', { skip: withoutChromium }, () => {
  const { tacho, calls, ask, approvals } = approvalsConsole()

  test('the list says what would run in one line, with hidden characters as escapes, and only one line of it', async () => {
    const command = `cat .env ${String.fromCodePoint(0x202e)}gpj\n${'x'.repeat(300)} end`
    const id = await ask('shell', { toolName: 'Bash', input: { command } })
    await ask('file', { toolName: 'Edit', input: { file_path: '/srv/app/main.ts', old_string: 'a', new_string: 'b' } })
    await ask('plain', { toolName: 'wire' })
    const { page, close } = await tacho.open(approvals())
    const row = (text: string) => waitingList(page).getByRole('listitem').filter({ hasText: text })
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

  test('a reason that quotes stands between marks of the other kind', async () => {
    const id = await ask('quotes', { reason: 'policy "Refunds": ask Ada' })
    const { page, close } = await tacho.open(`${approvals()}/${id}`)
    await pane(page).getByText('‘policy "Refunds": ask Ada’').waitFor()
    await calls.decide(id, 'REJECTED')
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

  test('whether the input is what was asked: calm, doubtful, and loud with a second step that no group decides', async () => {
    const right = await ask('right')
    const wrong = await ask('wrong', {
      inputHash: hashOf('transfer', { to: 'attacker', amount: 99_999 }),
      toolCallId: 'call_7',
    })
    const { page, close } = await tacho.open(`${approvals()}/${right}`)
    await pane(page).getByText('It matches what the agent asked for.').waitFor()
    await page.goto(`${approvals()}/${wrong}`)
    await waitingList(page).getByText('This input does not match what the agent asked for').waitFor()
    await pane(page).getByText('This input DOES NOT MATCH what the agent asked for').waitFor()
    await pane(page).getByText('call_7').waitFor()
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('alert').getByText('The input above does not match what the agent asked for').waitFor()
    assert.equal((await calls.read(wrong)).body.status, 'PENDING')
    await assertLooks(page, 'approval that does not match')
    await page.getByRole('button', { name: 'Not now' }).click()
    // Neither a double click nor a held key counts as the second confirmation.
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
})
