/** Scores: shown with runs, filters and orders, giving and withdrawing them, and the queue of runs to judge by keys. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { OperatorRunPage } from '@tacho/contract/runs/operator-run.ts'
import { newPerson } from '../../server/test/http/people/browser.ts'
import { eventually } from '../../server/test/setup/eventually.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, HARM, PHONE, startConsole, type TestConsole } from './setup/console.ts'

const MINUTE_MS = 60_000

describe('scores', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  before(async () => {
    tacho = await startConsole()
    const began = Date.now() - 60 * MINUTE_MS
    for (const [n, question] of ['Where is order 4711?', 'Cancel my order', 'Refund me', HARM].entries()) {
      const at = (minutes: number) => ({ runId: `chat-${n}`, timestamp: began + (n + minutes) * MINUTE_MS })
      const of = { agentId: 'support', agentName: 'Support bot' }
      await tacho.service.record([
        event({ ...of, ...at(0), eventType: 'USER_INPUT', payload: { text: question } }),
        event({ ...of, ...at(0.2), eventId: `answer-${n}`, label: 'answers', payload: { text: `The answer ${n}` } }),
        event({ ...of, ...at(0.3), eventType: 'SESSION_OUTCOME', payload: { status: 'COMPLETED' } }),
      ])
    }
    const feedback = (n: number, payload: object) =>
      event({ runId: `chat-${n}`, agentName: 'feedback', eventType: 'SCORE', label: 'score', payload })
    await tacho.service.record([
      feedback(0, { name: 'accuracy', value: 0.9, author: 'judge' }),
      feedback(0, {
        name: 'helpful',
        value: true,
        comment: 'Found it at once',
        author: 'user-1',
        targetEventId: 'answer-0',
      }),
      feedback(1, { name: 'accuracy', value: 0.1, author: 'judge' }),
      feedback(1, { name: 'tone', value: HARM.slice(0, 60), comment: HARM, author: 'judge' }),
    ])
  })
  after(() => tacho.close())

  const runs = async (query: string) => {
    const { body } = await tacho.service.operator<OperatorRunPage>(
      `/environments/${tacho.service.environmentId}/runs?${query}`,
    )
    return body.items.map(({ runId }) => runId)
  }

  test('the page of a run shows what was said, who said it and of which step', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/runs/chat-0`)
    const scores = page.getByRole('region', { name: 'Scores' })
    await scores.getByText('helpful yes').waitFor()
    await scores.getByText('accuracy 0.9').waitFor()
    await scores.getByRole('button', { name: 'Who, and why' }).click()
    await scores.getByText('Found it at once').waitFor()
    await scores.getByText('user-1').waitFor()
    await assertLooks(page, 'a run with scores')
    await scores.getByRole('button', { name: 'its step' }).click()
    await page.getByRole('complementary', { name: 'Step' }).getByText('The answer 0').last().waitFor()
    // The feedback came an hour later, and does not count for the length of the run.
    await page.getByText('18.0 s').first().waitFor()
    await close()
  })

  test('a person judges a run by a key, changes it and withdraws it; a viewer only reads', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/runs/chat-2`)
    await page.getByRole('button', { name: 'Judge…' }).waitFor()
    await page.keyboard.press('m')
    const dialog = page.getByRole('dialog', { name: 'Judge' })
    await dialog.getByLabel('Bad').check()
    await dialog.getByLabel('Why (optional)').fill('It promised a refund')
    await assertLooks(page, 'judging a run')
    await dialog.getByRole('button', { name: 'Judge', exact: true }).click()
    const scores = page.getByRole('region', { name: 'Scores' })
    await scores.getByText('quality no').waitFor()
    // The page ignores its keys while the dialog is open.
    await dialog.waitFor({ state: 'detached' })
    await page.keyboard.press('m')
    await dialog.getByLabel('Other').check()
    await dialog.getByLabel('A number or a word').fill('0.25')
    await page.keyboard.press('Enter')
    await scores.getByText('quality 0.25').waitFor()
    await scores.getByRole('button', { name: 'Who, and why' }).click()
    await scores.getByRole('button', { name: 'Withdraw' }).click()
    await scores.getByText('quality 0.25').first().waitFor({ state: 'detached' })
    await close()

    const viewer = await newPerson(tacho.service, 'vera@example.com', 'viewer', null)
    const looking = await tacho.open(`${tacho.home}/runs/chat-0`, { as: viewer })
    await looking.page.getByRole('region', { name: 'Scores' }).getByText('helpful yes').waitFor()
    assert.equal(await looking.page.getByRole('button', { name: 'Judge…' }).count(), 0)
    await looking.close()
  })

  test('the list of runs has scores, and is filtered and sorted by them', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/runs?columns=status,run,started,scores`)
    const rows = page.getByRole('table', { name: 'Runs' }).getByRole('row')
    await rows.filter({ hasText: 'chat-0' }).getByText('helpful yes').waitFor()
    await page.getByRole('button', { name: 'More filters' }).click()
    const filter = page.getByLabel('Score, such as accuracy<0.5')
    await filter.fill('accuracy<0.5')
    await rows.filter({ hasText: 'chat-0' }).waitFor({ state: 'detached' })
    await rows.filter({ hasText: 'chat-1' }).getByText('accuracy 0.1').waitFor()
    await filter.fill('accuracy<')
    assert.equal(await filter.evaluate((input) => (input as HTMLInputElement).validity.valid), false)
    await filter.fill('accuracy')
    await page.getByLabel('Order').selectOption('Highest score first')
    await page.waitForURL(/scoreOrder=highest/)
    // The rows keep the earlier order until the answer arrives.
    await rows.nth(1).filter({ hasText: 'chat-0' }).waitFor()
    await rows.nth(2).filter({ hasText: 'chat-1' }).waitFor()
    await assertLooks(page, 'runs by score')
    await close()
  })

  test('a queue of ended runs is judged by keys alone, run by run; judgements and skips are undone', async () => {
    await tacho.service.record([event({ runId: 'still running', agentId: 'support', agentName: 'Support bot' })])
    const { page, close } = await tacho.open(`${tacho.home}/judge?name=verdict&agent=support`)
    const judgement = page.getByRole('form', { name: 'Judgement' })
    const run = page.getByRole('region', { name: 'Run' })
    await run.getByText('chat-3', { exact: true }).waitFor()
    await page.getByText('Run 1 of 4.').waitFor()
    await page.getByText('Queues').click()
    await page.getByRole('button', { name: 'Give these runs to a person…' }).click()
    const given = page.getByRole('dialog', { name: 'Give these runs to a person' })
    await given.getByLabel('Name').fill('verdict: grace@example.com')
    await given.getByRole('button', { name: 'Save' }).click()
    await given.waitFor({ state: 'detached' })
    await page.goto(`${tacho.home}/judge`)
    await page.getByText('Queues').click()
    await page.getByRole('button', { name: 'verdict: grace@example.com' }).first().click()
    await page.waitForURL(
      (url) => url.searchParams.get('name') === 'verdict' && url.searchParams.get('agent') === 'support',
    )
    await run.getByText('chat-3', { exact: true }).waitFor()
    await page.getByText('Run 1 of 4.').waitFor()
    await run.getByText(HARM.slice(0, 20)).first().waitFor()
    await run.getByRole('link').first().getByText(HARM.slice(0, 20)).waitFor()
    await assertLooks(page, 'the queue to judge')
    // On a phone, only the score's name and one row of filters are above the run.
    await page.setViewportSize(PHONE.viewport)
    const filters = page.getByRole('button', { name: 'Filters (1)' })
    const bar = page.getByRole('search')
    await filters.waitFor()
    assert.ok(((await bar.boundingBox())?.height ?? 0) < 60, 'the filters take one row')
    await filters.click()
    await bar.getByLabel('Status').selectOption('Completed')
    await page.getByRole('button', { name: 'Filters (2)' }).click()
    await bar.getByLabel('Status').waitFor({ state: 'hidden' })
    await page.setViewportSize({ width: 1280, height: 800 })
    await run.getByText('chat-3', { exact: true }).waitFor()
    await page.keyboard.press('n')
    await run.getByText('chat-2', { exact: true }).waitFor()
    await judgement.getByRole('button', { name: /^Undo/ }).click()
    await run.getByText('chat-3', { exact: true }).waitFor()
    await page.keyboard.press('n')
    await run.getByText('chat-2', { exact: true }).waitFor()
    await page.getByText('Run 2 of 4.').waitFor()
    await page.keyboard.press('c')
    await judgement.getByLabel('Why').fill('too short')
    await page.keyboard.press('Escape')
    await page.keyboard.press('0')
    await run.getByText('chat-1', { exact: true }).waitFor()
    await page.getByText('1 judged now. 1 skipped.').waitFor()
    await page.keyboard.press('u')
    await run.getByText('chat-2', { exact: true }).waitFor()
    assert.deepEqual(await runs('unscored=verdict&status=COMPLETED'), ['chat-3', 'chat-2', 'chat-1', 'chat-0'])
    await page.keyboard.press('1')
    await run.getByText('chat-1', { exact: true }).waitFor()
    await judgement.getByLabel('A number or a word instead').fill('polite')
    await page.keyboard.press('Enter')
    await run.getByText('chat-0', { exact: true }).waitFor()
    await page.keyboard.press('Escape')
    await judgement.getByRole('button', { name: /^\S* ?Good/ }).click()
    await page.getByRole('heading', { name: 'No run is left to judge' }).waitFor()
    await page.getByRole('button', { name: 'Look again' }).click()
    await run.getByText('chat-3', { exact: true }).waitFor()
    // The page continues before a judgement is stored.
    await eventually(async () => {
      assert.deepEqual(await runs('unscored=verdict&status=COMPLETED'), ['chat-3'])
      assert.deepEqual(await runs('score=verdict=polite'), ['chat-1'])
      return true
    }, 'the judgements to be stored')
    await close()
  })

  test('20 quick keys give 20 labels, the second judge is blind, and the judges are compared', async () => {
    const began = Date.now() - 30 * MINUTE_MS
    await tacho.service.record(
      Array.from({ length: 22 }, (_, n) =>
        event({
          runId: `quick-${n}`,
          agentId: 'quick',
          agentName: 'Quick',
          timestamp: began + n * MINUTE_MS,
          eventType: 'SESSION_OUTCOME',
          payload: { status: 'COMPLETED' },
        }),
      ),
    )
    const labels = async () => (await runs('score=speed&agent=quick&limit=100')).length
    const { page, close } = await tacho.open(`${tacho.home}/judge?name=speed&agent=quick`)
    await page.getByRole('region', { name: 'Run' }).getByText('quick-21', { exact: true }).waitFor()
    // Press all keys within one task of the page, so that no new run arrives in between.
    await page.evaluate(() => {
      for (let n = 0; n < 21; n++) {
        document.dispatchEvent(new KeyboardEvent('keydown', { key: n % 4 === 0 ? '0' : '1', bubbles: true }))
      }
    })
    await page.getByText('21 judged now.').waitFor()
    await page.getByRole('region', { name: 'Run' }).getByText('quick-0', { exact: true }).waitFor()
    await eventually(async () => (await labels()) === 21, 'all labels')
    assert.deepEqual(
      (await runs('score=speed=false&agent=quick')).map((runId) => Number(runId.slice('quick-'.length))),
      [21, 17, 13, 9, 5, 1],
    )
    await close()

    const ben = await newPerson(tacho.service, 'ben@example.com', 'approver', null)
    const second = await tacho.open(`${tacho.home}/runs/quick-21`, { as: ben })
    const scores = second.page.getByRole('region', { name: 'Scores' })
    await scores.getByText('speed hidden until you judge').waitFor()
    await scores.getByRole('button', { name: 'Who, and why' }).click()
    await scores.getByText('You see what others judged once you have judged the same.').waitFor()
    assert.equal(await scores.getByText('speed no', { exact: true }).count(), 0)
    await assertLooks(second.page, 'a run with a hidden score')
    // The page continues before a judgement is stored, and stores judgements one after the other.
    const lastStored = second.page.waitForResponse(
      (response) => response.request().method() === 'POST' && response.url().endsWith('/quick-18/scores/give'),
    )
    // The queue of the second judge has the same runs.
    await second.page.goto(`${tacho.home}/judge?name=speed&agent=quick`)
    for (const [runId, key] of [
      ['quick-21', '0'],
      ['quick-20', '1'],
      ['quick-19', '0'],
      ['quick-18', '1'],
    ] as const) {
      await second.page.getByRole('region', { name: 'Run' }).getByText(runId, { exact: true }).waitFor()
      await second.page.keyboard.press(key)
    }
    assert.ok((await lastStored).ok())
    assert.ok((await runs('score=speed=0.5')).includes('quick-19'))
    await second.page.getByRole('button', { name: 'Compare judges' }).click()
    const dialog = second.page.getByRole('dialog', { name: 'Judges of speed' })
    // Four runs: both said no, both yes, one of each, both yes.
    const pair = dialog.getByText('κ 0.50 ± 0.85, n = 4: 3 equal')
    await pair.click()
    await dialog.getByRole('link', { name: 'quick-19' }).waitFor()
    const own = dialog.getByRole('row').filter({ hasText: 'ben@example.com' })
    assert.match((await own.textContent()) ?? '', /speed4 ?0\.5/)
    await assertLooks(second.page, 'two judges')
    await second.close()
  })

  test('usage sums scores up by agent', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/usage`)
    const row = page.getByRole('table', { name: 'Scores' }).getByRole('row').filter({ hasText: 'accuracy' })
    await row.getByText('0.5').waitFor()
    await assertLooks(page, 'usage with scores')
    await close()
  })
})
