/** The comparison of two runs, step by step. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, PHONE, startConsole, type TestConsole } from './setup/console.ts'

describe('comparing runs', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  before(async () => {
    tacho = await startConsole()
    const start = Date.now() - 60_000
    const steps = (runId: string, list: [label: string, input: unknown, more?: object][]) =>
      list.map(([label, input, more], index) =>
        event({
          runId,
          eventType: 'TOOL_CALL',
          label,
          timestamp: start + index * 1_000,
          payload: { toolName: label, input, ...more },
        }),
      )
    await tacho.service.record([
      ...steps('good', [
        ['get_order', { id: 1 }, { output: 'paid', latency: 100 }],
        ['refund', { amount: 50 }],
      ]),
      ...steps('worse', [
        // Another answer with the same number of bytes.
        ['get_order', { id: 1 }, { output: 'open', latency: 900 }],
        ['get_order', { id: 2 }],
        ['refund', { amount: 5000 }],
      ]),
    ])
  })
  after(() => tacho.close())

  test('by keyboard from a run: steps are aligned, and differences stand out', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/runs/good`)
    await page.getByRole('list', { name: 'Timeline' }).getByRole('listitem').first().waitFor()
    await page.keyboard.press('x')
    await page.getByLabel('Beginning of a run id').fill('wor')
    await page.getByRole('radio', { name: 'worse', checked: true }).waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL('**/compare?a=good&b=worse')
    await page.getByText('1 step in one run only.').waitFor()
    const steps = page.getByRole('list', { name: 'Steps' })
    await steps.getByRole('button').filter({ hasText: 'only in the second' }).waitFor()
    await steps.getByRole('button').filter({ hasText: '≠ output · the second took 800 ms longer' }).waitFor()
    await steps.getByRole('button').filter({ hasText: '≠ input' }).click()
    await steps.getByText('5000', { exact: true }).waitFor()
    await steps.getByText('50', { exact: true }).waitFor()
    await close()
  })

  test('the sums say in words which run took more, and with which model, prompt and policies each ran', async () => {
    const start = Date.now() - 55_000
    const turn = (runId: string, model: string, version: string, length: number) => [
      event({ runId, eventType: 'LLM_CALL', label: 'Hm', timestamp: start, payload: { model, cost: 0.5 } }),
      event({
        runId,
        eventType: 'POLICY_DECISION',
        label: 'ALLOW refund',
        timestamp: start + 10,
        payload: { action: 'WARN', toolName: 'refund', policyIds: ['limit'], policyVersions: { limit: version } },
      }),
      event({
        runId,
        eventType: 'SESSION_OUTCOME',
        label: 'Done',
        timestamp: start + length,
        payload: { status: 'COMPLETED' },
      }),
    ]
    await tacho.service.record([...turn('on old', 'small-1', '1', 2_000), ...turn('on new', 'small-2', '3', 5_000)])
    const { page, close } = await tacho.open(`${tacho.home}/compare?a=on%20old&b=on%20new`)
    const sums = page.getByRole('table', { name: 'Sums' })
    await sums.getByRole('row', { name: /^Policies/ }).waitFor()
    const rowOf = async (name: string) =>
      (await sums.getByRole('row', { name }).getByRole('cell').allInnerTexts()).join(' | ')
    assert.equal(await rowOf('Model'), 'small-1 | small-2')
    assert.equal(await rowOf('Policies'), 'limit 1 | limit 3')
    assert.match(await rowOf('Length'), /^2\.0 s \| 5\.0 s: 3\.0 s longer$/)
    assert.equal(await sums.getByRole('row', { name: /^Prompt/ }).count(), 0)
    await assertLooks(page, 'compare sums')
    await page.goto(`${tacho.home}/compare?a=on%20new&b=on%20old`)
    await sums.getByText('3.0 s shorter').waitFor()
    await page.goto(`${tacho.home}/compare?a=on%20new&b=on%20new`)
    await sums.getByText('small-2').first().waitFor()
    assert.equal(await sums.getByRole('row', { name: /^Policies/ }).count(), 0)
    await close()
  })

  test('below a long question on a phone no half of its next line shows', async () => {
    const question =
      'I would like to have all my money back, because the game that you sent me arrived broken. '.repeat(3)
    const asked = (runId: string) =>
      event({ runId, eventType: 'USER_INPUT', label: question.slice(0, 200), payload: { text: question } })
    await tacho.service.record([asked('asked'), asked('again')])
    const address = `${tacho.home}/compare?a=asked&b=again`
    const { page, close } = await tacho.open(address, { ...PHONE, hasTouch: true, isMobile: true })
    const link = page.getByRole('table', { name: 'Sums' }).getByRole('link').first()
    await link.waitFor()
    const [height, line] = await link.evaluate((element) => [
      element.clientHeight,
      Number.parseFloat(getComputedStyle(element).lineHeight),
    ])
    assert.ok(line && height && Math.abs(height - 3 * line) < 2, `${height} px of lines of ${line} px`)
    await close()
  })

  test('without runs in its address, the page asks for one after the other', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/compare`)
    await page.getByText('Choose the first of two runs.').waitFor()
    await assertLooks(page, 'compare chooses')
    await page.getByLabel('Beginning of a run id').fill('good')
    await page.getByRole('radio', { checked: true }).waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL('**/compare?a=good')
    await page.getByLabel('Beginning of a run id').fill('wor')
    await page.getByRole('radio', { name: 'worse', checked: true }).waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL('**/compare?a=good&b=worse')
    await page.getByRole('list', { name: 'Steps' }).waitFor()
    await close()
  })

  test('the second run of another environment stays chosen while the first is asked for', async () => {
    const { body: workspaces } = await tacho.service.operator<{ items: { id: string }[] }>('/workspaces')
    const made = await tacho.service.operator<{ id: string }>(`/workspaces/${workspaces.items[0]?.id}/environments`, {
      body: { name: 'elsewhere' },
    })
    const key = await tacho.service.newKey({ scopes: ['events:write'], environmentId: made.body.id })
    await tacho.service.record([event({ runId: 'good', label: 'elsewhere too', eventType: 'AGENT_STEP' })], key)
    const { page, close } = await tacho.open(`${tacho.home}/compare?b=good&bIn=elsewhere`)
    await page.getByLabel('Beginning of a run id').fill('goo')
    // The other environment has another run with the same id.
    await page.getByRole('radio', { name: 'good', checked: true }).waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL('**/compare?a=good&b=good&bIn=elsewhere')
    await page.getByRole('table', { name: 'Sums' }).getByText('in elsewhere').waitFor()
    await page.goto(`${tacho.home}/compare?a=good&bIn=elsewhere`)
    await page.getByLabel('Beginning of a run id').fill('wor')
    await page.getByText('No run here begins so.').waitFor()
    await close()
  })

  test('a failed step is marked, an end is never empty, and a cost difference below $0.0001 is shown as none', async () => {
    const start = Date.now() - 35_000
    const run = (runId: string, cost: number, call: object, end: object) => [
      event({ runId, eventType: 'LLM_CALL', label: 'Hm', timestamp: start, payload: { cost } }),
      event({
        runId,
        eventType: 'TOOL_CALL',
        label: 'track_parcel',
        timestamp: start + 10,
        payload: { toolName: 'track_parcel', input: { id: 1 }, ...call },
      }),
      event({ runId, eventType: 'SESSION_OUTCOME', label: 'End', timestamp: start + 1_000, payload: end }),
    ]
    const error = { error: 'HTTPError: 503 from carrier' }
    await tacho.service.record([
      ...run('delivered', 0.01, { output: 'today' }, { status: 'COMPLETED' }),
      ...run('undelivered', 0.01002, error, { status: 'FAILED', ...error }),
    ])
    const { page, close } = await tacho.open(`${tacho.home}/compare?a=delivered&b=undelivered`)
    const row = page.getByRole('list', { name: 'Steps' }).getByRole('button').filter({ hasText: 'track_parcel' })
    const mark = row.getByText(/failed: HTTPError: 503 from carrier/)
    await mark.waitFor()
    const sums = page.getByRole('table', { name: 'Sums' })
    const cellsOf = (name: string) => sums.getByRole('row', { name }).getByRole('cell').allInnerTexts()
    assert.match((await cellsOf('Cost')).join(' | '), /: about the same$/)
    const [completed, failed] = await cellsOf('Ended')
    assert.equal(completed, 'Completed')
    assert.match(failed ?? '', /503 from carrier/)
    assert.equal(await page.getByText('<$0.0001').count(), 0)
    await assertLooks(page, 'compare a failed step')
    // On a phone, an equal step is shown once, with its failure.
    await page.setViewportSize({ width: 390, height: 844 })
    await mark.waitFor()
    await close()
  })

  test('a long question is cut in the choice of a run, so its status stays in sight', async () => {
    await tacho.service.record([
      event({ runId: 'wordy', eventType: 'USER_INPUT', payload: { text: 'The parcel never came. '.repeat(10) } }),
    ])
    const { page, close } = await tacho.open(`${tacho.home}/runs/good`)
    await page.getByRole('button', { name: 'Compare…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Beginning of a run id').fill('wordy')
    await dialog.getByRole('radio', { name: 'The parcel never came.' }).waitFor()
    const [outer, inner] = [await dialog.boundingBox(), await dialog.getByRole('group', { name: 'Run' }).boundingBox()]
    assert.ok(outer && inner && inner.x + inner.width <= outer.x + outer.width)
    await close()
  })

  test('a failed run is compared with the good one before it in one click, words beside words', async () => {
    const start = Date.now() - 50_000
    const chat = (runId: string, at: number, says: string, answers: string, status: string) =>
      [
        { eventType: 'USER_INPUT', label: 'Refund it', payload: { text: 'Refund it' } },
        { eventType: 'LLM_CALL', label: answers, payload: { output: answers } },
        { eventType: 'USER_INPUT', label: says, payload: { text: says } },
        { eventType: 'SESSION_OUTCOME', label: status, payload: { status } },
      ].map((one, n) => event({ runId, agentId: 'chat', agentName: 'Chat', timestamp: start + at + n * 10, ...one }))
    await tacho.service.record([
      ...chat('fine', 0, 'It is order 7', 'Which order?', 'COMPLETED'),
      ...chat('broken', 5_000, 'It is order 8', 'I cannot refund that', 'FAILED'),
      ...chat('later', 9_000, 'It is order 9', 'Which order?', 'COMPLETED'),
    ])
    const { page, close } = await tacho.open(`${tacho.home}/runs/broken`)
    await page.getByRole('button', { name: /good run/ }).click()
    await page.waitForURL('**/compare?a=fine&b=broken')
    await page.getByText('The runs took the same steps.').waitFor()
    const row = page.getByRole('list', { name: 'Steps' }).getByRole('button').nth(2)
    assert.deepEqual(await row.locator('mark').allTextContents(), ['7', '8'])
    await row.click()
    const text = page.getByRole('region', { name: 'Text' })
    await text.getByRole('group', { name: 'In the second run' }).getByText('It is order').waitFor()
    assert.deepEqual(await text.locator('mark').allTextContents(), ['7', '8'])
    await page.getByRole('checkbox', { name: 'Only differences' }).check()
    await page.getByRole('list', { name: 'Steps' }).getByText('Refund it').first().waitFor({ state: 'detached' })
    await assertLooks(page, 'compare chats')
    await page.goto(`${tacho.home}/runs/fine`)
    await page.getByRole('button', { name: 'Compare…' }).waitFor()
    assert.equal(await page.getByRole('button', { name: /good run/ }).count(), 0)
    await close()
  })

  test('runs that come nearest are told apart by what was asked and answered', async () => {
    const start = Date.now() - 45_000
    const chat = (runId: string, at: number, question: string, answer: string, status: string) =>
      [
        { eventType: 'USER_INPUT', label: question, payload: { text: question } },
        { eventType: 'LLM_CALL', label: answer, payload: { output: answer } },
        { eventType: 'SESSION_OUTCOME', label: status, payload: { status } },
      ].map((one, n) => event({ runId, agentId: 'desk', agentName: 'Desk', timestamp: start + at + n * 10, ...one }))
    await tacho.service.record([
      ...chat('one', 0, 'Hello', 'Good day, **Ana**', 'COMPLETED'),
      ...chat('two', 1_000, 'Hello', 'Which order is it?', 'COMPLETED'),
      ...chat('lost', 5_000, 'Where is my parcel?', 'I cannot tell', 'FAILED'),
    ])
    const { page, close } = await tacho.open(`${tacho.home}/runs/lost`)
    await page.getByRole('button', { name: /good run/ }).click()
    const dialog = page.getByRole('dialog', { name: 'No completed run is like this one' })
    const items = dialog.getByRole('listitem')
    await items.first().waitFor()
    const texts = (await items.allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' '))
    assert.equal(texts.length, 2)
    assert.match(
      texts[0] ?? '',
      /^Hello Answered: (Good day, Ana|Which order is it\?) .+, 3 steps, 20 ms; the same tools/,
    )
    assert.notEqual(texts[0]?.slice(0, 30), texts[1]?.slice(0, 30))
    await assertLooks(page, 'candidates')
    await items.filter({ hasText: 'Which order' }).getByRole('link').click()
    await page.waitForURL('**/compare?a=two&b=lost')
    await close()
  })

  test('long runs are aligned beside the page, and end side by side', async () => {
    const start = Date.now() - 40_000
    for (const [runId, other] of [
      ['long one', 'a'],
      ['long two', 'b'],
    ] as const) {
      const steps = Array.from({ length: 700 }, (_, n) =>
        event({
          runId,
          label: n === 350 ? `turn ${other}` : `step ${n}`,
          eventType: n % 2 ? 'TOOL_CALL' : 'AGENT_STEP',
          timestamp: start + n,
        }),
      )
      for (let at = 0; at < steps.length; at += 100) await tacho.service.record(steps.slice(at, at + 100))
    }
    const { page, close } = await tacho.open()
    const workers: string[] = []
    page.on('worker', (worker) => workers.push(worker.url()))
    await page.goto(`${tacho.home}/compare?a=long%20one&b=long%20two`)
    await page.getByText('The runs took the same steps.').waitFor()
    assert.match(workers.join(), /align-worker/)
    await page.getByRole('checkbox', { name: 'Only differences' }).check()
    const rows = page.getByRole('list', { name: 'Steps' }).getByRole('listitem')
    await rows.nth(1).waitFor({ state: 'detached' })
    assert.deepEqual(await rows.locator('mark').allTextContents(), ['a', 'b'])
    await close()
  })

  test('a replay in another environment is compared with its original, from its page and from that of the original', async () => {
    const { body: workspaces } = await tacho.service.operator<{ items: { id: string }[] }>('/workspaces')
    const made = await tacho.service.operator<{ id: string }>(`/workspaces/${workspaces.items[0]?.id}/environments`, {
      body: { name: 'replays' },
    })
    const environmentId = made.body.id
    const key = await tacho.service.newKey({ scopes: ['events:write'], environmentId })
    const start = Date.now() - 30_000
    const recording = (runId: string, amount: number, more: object = {}) => [
      event({
        runId,
        eventType: 'TOOL_CALL',
        label: 'refund',
        timestamp: start,
        payload: { toolName: 'refund', input: { amount }, ...more },
      }),
      event({
        runId,
        eventType: 'SESSION_OUTCOME',
        label: 'COMPLETED',
        timestamp: start + 1_000,
        payload: { status: 'COMPLETED' },
      }),
    ]
    const replay = (runId: string, of: string) =>
      recording(runId, 4711, { runMetadata: { replayOf: of }, runTags: ['replay'] })
    await tacho.service.record(recording('tuesday', 42))
    await tacho.service.record([...replay('again', 'tuesday'), ...replay('lost', 'erased')], key)

    const { page, close } = await tacho.open(`${tacho.service.url}/w/default/replays/runs/again`)
    await page.getByRole('button', { name: 'Compare with its original' }).click()
    await page.waitForURL('**/w/default/development/compare?a=tuesday&b=again&bIn=replays')
    await page.getByText('The runs took the same steps.').waitFor()
    const sums = page.getByRole('table', { name: 'Sums' })
    assert.deepEqual(await sums.getByText(/^in /).allTextContents(), ['in development', 'in replays'])
    const steps = page.getByRole('list', { name: 'Steps' })
    await steps.getByRole('button').filter({ hasText: '≠ input' }).click()
    await steps.getByText('42', { exact: true }).waitFor()
    await steps.getByText('4711', { exact: true }).waitFor()
    await assertLooks(page, 'compare environments')
    await steps.getByRole('link', { name: 'Open in the second run' }).click()
    await page.waitForURL('**/w/default/replays/runs/again?step=*')

    await page.goto(`${tacho.home}/runs/tuesday`)
    await page.getByRole('button', { name: 'Compare…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('In the environment').selectOption('replays')
    await dialog.getByLabel('Beginning of a run id').fill('again')
    await dialog.getByRole('radio', { name: 'again', checked: true }).waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL('**/compare?a=tuesday&b=again&bIn=replays')
    await page.getByText('The runs took the same steps.').waitFor()

    // The address names the environment by id, as all addresses do.
    await page.goto(`${tacho.home}/compare?a=tuesday&b=again&bIn=${environmentId}`)
    await page.getByText('The runs took the same steps.').waitFor()
    await page.goto(`${tacho.home}/compare?a=tuesday&b=again&bIn=elsewhere`)
    await page.getByText('There is nothing here').waitFor()

    await page.goto(`${tacho.service.url}/w/default/replays/runs/lost`)
    await page.getByRole('button', { name: 'Compare with its original' }).click()
    await page.getByText('No environment of this workspace has the run that it replays.').waitFor()
    await page.goto(`${tacho.home}/runs/tuesday`)
    await page.getByRole('button', { name: 'Compare…' }).waitFor()
    assert.equal(await page.getByRole('button', { name: /original/ }).count(), 0)
    await close()
  })

  test('the page is accessible and fits, light, dark and on a phone', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/compare?a=good&b=worse`)
    const step = page.getByRole('list', { name: 'Steps' }).getByRole('button').filter({ hasText: '≠ input' })
    await step.click()
    await page.getByText('5000', { exact: true }).waitFor()
    await assertLooks(page, 'compare')
    await close()
  })
})
