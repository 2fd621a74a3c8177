/** The page of a run shows its question, its outcome and the reason, for runs of any length. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { printable } from '@tacho/contract/engine/shown-text.ts'
import { approvalCalls, HASH } from '../../server/test/setup/approval-service.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, HARM, startConsole, type TestConsole } from './setup/console.ts'

const LONG_RUN = 3_000
const WIDE = { viewport: { width: 1440, height: 900 } }

describe('the page of a run', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  before(async () => {
    tacho = await startConsole()
  })
  after(() => tacho.close())

  const record = async (events: Record<string, unknown>[]) =>
    assert.equal((await tacho.service.record(events)).body.accepted, events.length)

  /** An agent that looks up an order and cannot pay: spans in spans, a loop, and an end that repeats the error. */
  function refund(runId: string, start: number): Record<string, unknown>[] {
    const root = { runId, spanId: `${runId} root` }
    const step = (spanId: string, at: number, rest: Record<string, unknown>, parentSpanId = root.spanId) =>
      event({ runId, spanId: `span of ${runId} ${spanId}`, parentSpanId, timestamp: start + at, ...rest })
    const pay = (n: number, at: number) =>
      step(`pay ${n}`, at, {
        eventId: `${runId} pay ${n}`,
        eventType: 'TOOL_CALL',
        label: 'pay',
        payload: {
          toolName: 'pay',
          input: { order: 'W-118', amount: 48.5 },
          error: { name: 'PaymentError', message: 'payment provider answered 503' },
          latency: 800,
        },
      })
    const call = (at: number, content: string, tool: string) => ({
      eventType: 'LLM_CALL',
      label: 'Decide',
      payload: {
        model: 'gpt-5',
        latency: 900,
        cost: 0.004,
        usage: { promptTokens: 900, completionTokens: 40, totalTokens: 940 },
        messages: [
          { role: 'system', content: 'You help customers.' },
          { role: 'user', content: 'Refund order **W-118**, the parcel never came.' },
          ...(at > 2_000 ? [{ role: 'tool', content: 'delivered: no' }] : []),
        ],
        output: { role: 'assistant', content, tool_calls: [{ id: 'a', name: tool, arguments: {} }] },
      },
    })
    return [
      event({
        ...root,
        eventType: 'USER_INPUT',
        label: 'Customer writes',
        payload: { text: 'Refund order W-118, the parcel never came.' },
        timestamp: start,
      }),
      step('look', 1_000, call(1_000, 'I look the order up.', 'get_order')),
      step('order', 1_400, {
        eventType: 'TOOL_CALL',
        label: 'get_order',
        payload: { toolName: 'get_order', input: { order: 'W-118' }, output: { delivered: false }, latency: 300 },
      }),
      step('decide', 2_500, call(2_500, 'It was not delivered: I refund it.', 'pay')),
      step('held', 2_550, {
        eventId: `${runId} held`,
        eventType: 'POLICY_DECISION',
        label: 'refunds',
        payload: { action: 'REQUIRE_APPROVAL', toolName: 'pay', policyIds: ['refunds'] },
      }),
      pay(1, 3_500),
      pay(2, 4_500),
      pay(3, 5_500),
      event({
        ...root,
        eventId: `${runId} end`,
        eventType: 'SESSION_OUTCOME',
        label: 'Failed',
        payload: { status: 'FAILED', error: { name: 'PaymentError', message: 'payment provider answered 503' } },
        timestamp: start + 5_600,
      }),
    ]
  }

  test('its title is the question, and one sentence says how it ended, at which step and how often', async () => {
    await record(refund('asked', Date.now() - 60_000))
    const { page, close } = await tacho.open(`${tacho.home}/runs/asked`, WIDE)
    const title = page.getByRole('heading', { level: 1 })
    await title.getByText('Refund order W-118, the parcel never came.').waitFor()
    await title.getByText('asked', { exact: true }).waitFor()
    await page.waitForFunction(() => document.title.startsWith('Refund order W-118'))
    const why = page.getByRole('note', { name: 'Why it failed' })
    await why.getByText('Failed at step 6').waitFor()
    assert.match(await why.innerText(), /PaymentError in pay: payment provider answered 503, three times/)
    await assertLooks(page, 'run asked')
    // A repeated problem is one chip, and each click leads to the next occurrence.
    const chips = page.getByRole('group', { name: 'Problems' })
    assert.deepEqual(
      (await chips.getByRole('button').allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' ')),
      ['‖ pay needed approval', '✕ pay failed ×3', '✕ run failed'],
    )
    const inspector = page.getByRole('complementary', { name: 'Step' })
    for (const n of [1, 2, 3, 1]) {
      await chips.getByRole('button', { name: 'pay failed' }).click()
      await inspector.getByText(`asked pay ${n}`, { exact: true }).waitFor()
    }
    await page.keyboard.press('Escape')
    await page.keyboard.press('e')
    await inspector.getByText('asked pay 1', { exact: true }).waitFor()
    // The error is shown before the input, because people look for it first.
    await inspector.getByText('Input', { exact: true }).waitFor()
    const parts = await inspector.getByText(/^(Error|Input)$/).allInnerTexts()
    assert.deepEqual(parts, ['Error', 'Input'])
    await close()
  })

  test('a run that failed by its outcome alone names the call that was blocked before', async () => {
    const held = { action: 'BLOCK', toolName: 'pay', policyIds: ['ceiling'] }
    await tacho.service.record([
      event({ runId: 'held', eventType: 'POLICY_DECISION', label: 'BLOCK pay', payload: held }),
      event({ runId: 'held', eventType: 'SESSION_OUTCOME', payload: { status: 'FAILED' } }),
    ])
    const { page, close } = await tacho.open(`${tacho.home}/runs/held`)
    const why = page.getByRole('note', { name: 'Why it failed' })
    await why.getByText('failed by its recorded outcome; before that, pay was blocked by ceiling').waitFor()
    await close()
  })

  test('labels of the time axis have room beside an open step, in every width', async () => {
    await record(refund('axis', Date.now() - 60_000))
    const { page, close } = await tacho.open(`${tacho.home}/runs/axis?step=axis%20pay%201`, WIDE)
    await page.getByRole('complementary', { name: 'Step' }).waitFor()
    for (const width of [1440, 1280, 1024, 900, 700]) {
      await page.setViewportSize({ width, height: 800 })
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)))
      const boxes = await page.locator('[data-axis] > span').evaluateAll((all) =>
        all
          .map((label) => label.getBoundingClientRect())
          .filter((box) => box.width > 0)
          .map(({ left, right }) => [left, right] as const),
      )
      for (const [at, [left]] of boxes.entries())
        assert.ok(at === 0 || left >= (boxes[at - 1]?.[1] ?? 0) + 4, `${width}: ${JSON.stringify(boxes)}`)
    }
    // Everything on the page of a failed run fits at a zoom of 400 %.
    await page.keyboard.press('Escape')
    await page.setViewportSize({ width: 320, height: 256 })
    await page.waitForFunction(() => document.documentElement.scrollWidth <= window.innerWidth)
    await close()
  })

  test('its head has the end user, tags and metadata, a line each at most, and each leads to the runs that have it', async () => {
    const runTags = Array.from({ length: 40 }, (_, index) => `tag number ${index}`)
    const payload = { userId: `4711 ${HARM}`, runTags, runMetadata: { task: 'refund' } }
    await tacho.service.record([event({ runId: 'labelled', payload })])
    const { page, close } = await tacho.open(`${tacho.home}/runs/labelled`, WIDE)
    const head = page.locator('dl').filter({ hasText: 'tag number 0' })
    await head.getByText(printable(`4711 ${HARM}`)).waitFor()
    const box = await head.locator('dd').filter({ hasText: 'tag number 39' }).locator('..').boundingBox()
    assert.ok(box && box.height < 30, JSON.stringify(box))
    await assertLooks(page, 'run labelled')
    await head.getByRole('link', { name: 'task=refund' }).click()
    await page.waitForURL((url) => url.searchParams.get('metadata') === 'task=refund')
    await page.getByRole('row').filter({ hasText: 'labelled' }).waitFor()
    await close()
  })

  test('problems of one name are told apart by their reasons', async () => {
    const refused = (n: number, error: string) =>
      event({
        runId: 'apart',
        eventId: `no ${n}`,
        eventType: 'TOOL_CALL',
        label: 'pay',
        payload: { toolName: 'pay', error },
      })
    await record([refused(1, 'no such order'), refused(2, 'no card'), refused(3, 'no such order')])
    const { page, close } = await tacho.open(`${tacho.home}/runs/apart`, WIDE)
    const chips = page.getByRole('group', { name: 'Problems' }).getByRole('button')
    await chips.first().waitFor()
    assert.deepEqual(
      (await chips.allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' ')),
      ['✕ pay failed: no such order ×2', '✕ pay failed: no card'],
    )
    await close()
  })

  test('a long question leaves the head of a run in one line, with all of its status', async () => {
    const text = 'The parcel never came, and nobody answers. '.repeat(8)
    const payload = { status: 'COMPLETED' }
    await record([
      event({ runId: 'wordy', eventType: 'USER_INPUT', payload: { text } }),
      event({ runId: 'wordy', eventType: 'SESSION_OUTCOME', payload }),
    ])
    const { page, close } = await tacho.open(`${tacho.home}/runs/wordy`)
    const head = page.getByRole('heading', { level: 1 })
    await head.getByText('The parcel never came').first().waitFor()
    await page.getByText('2 steps').last().waitFor()
    const [title, more] = [await head.boundingBox(), await page.getByRole('button', { name: 'More' }).boundingBox()]
    assert.ok(title && more && more.y < title.y + title.height, 'the menu stands beside the title')
    const status = page.getByText(/Completed$/).first()
    assert.equal(await status.evaluate(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth), false)
    await close()
  })

  test('a step has the same time in its row, in the inspector and in the transcript', async () => {
    await record(refund('timed', Date.now() - 60_000))
    const { page, close } = await tacho.open(`${tacho.home}/runs/timed?step=timed%20pay%202`, WIDE)
    // The step ended 4.5 s after the run's start, and took 0.8 s.
    await page.getByRole('complementary', { name: 'Step' }).getByText('Step 7 · +3.7 s · took 800 ms').waitFor()
    const row = page.locator('[role=listitem][aria-current=step]')
    assert.match(await row.innerText(), /^3\.7 s\n/)
    await page.keyboard.press('c')
    await row.getByText('+3.7 s').waitFor()
    await close()
  })

  test('a long run tells why it failed in ten requests, before its rows have arrived', async () => {
    const start = Date.now() - 600_000
    const fine = Array.from({ length: LONG_RUN }, (_, n) =>
      event({
        runId: 'long',
        eventType: 'TOOL_CALL',
        label: `read ${n}`,
        payload: { toolName: 'read', output: 'ok' },
        timestamp: start + n * 100,
      }),
    )
    for (let at = 0; at < fine.length; at += 100) await record(fine.slice(at, at + 100))
    await record(refund('long', start + LONG_RUN * 100))
    const { page, close } = await tacho.open(tacho.home, WIDE)
    let asked = 0
    let pages = 0
    let untilTold = 0
    page.on('response', (response) => void (response.url().includes('/problems') && (untilTold ||= asked)))
    page.on('request', (request) => (asked += request.url().includes('/runs/long') ? 1 : 0))
    const { promise: rest, resolve: goOn } = Promise.withResolvers<void>()
    await page.route(/\/runs\/long\/events\?/, async (route) => {
      if (++pages > 1) await rest
      await route.continue()
    })
    await page.goto(`${tacho.home}/runs/long`)
    await page.getByRole('note', { name: 'Why it failed' }).getByText('PaymentError in pay').waitFor()
    await page.getByRole('group', { name: 'Problems' }).getByRole('button', { name: 'pay failed ×3' }).waitFor()
    assert.ok(untilTold > 0 && untilTold <= 10, `${untilTold} requests`)
    goOn()
    await page.getByText('Failed at step 3,006').waitFor()
    await page.keyboard.press(']')
    await page.getByRole('complementary', { name: 'Step' }).getByText('long held', { exact: true }).waitFor()
    await close()
  })

  test('branches and loops fold by pointer and key, and never hide the step that is open', async () => {
    const start = Date.now() - 60_000
    const again = Array.from({ length: 6 }, (_, n) =>
      event({
        runId: 'tree',
        eventId: `try ${n}`,
        spanId: `try ${n} span`,
        parentSpanId: 'agent',
        eventType: 'TOOL_CALL',
        label: 'get_order',
        payload: { toolName: 'get_order', error: 'HTTP 500', latency: 50 },
        timestamp: start + 200 + n * 100,
      }),
    )
    await record([
      event({ runId: 'tree', spanId: 'agent', label: 'research', timestamp: start }),
      ...again,
      event({ runId: 'tree', spanId: 'agent', label: 'gives up', timestamp: start + 2_000 }),
    ])
    const { page, close } = await tacho.open(`${tacho.home}/runs/tree`, WIDE)
    const rows = page.getByRole('list', { name: 'Timeline' }).getByRole('listitem')
    const shows = (...labels: string[]) =>
      page.waitForFunction((labels) => {
        const texts = [...document.querySelectorAll('[aria-label=Timeline] [role=listitem] bdi:first-child')]
        return (
          JSON.stringify(texts.map(({ textContent }) => textContent).filter((text) => labels.includes(text))) ===
          JSON.stringify(labels)
        )
      }, labels)
    const loop = rows.filter({ hasText: 'get_order' }).first()
    await loop.getByText('×6, same error').waitFor()
    assert.equal(await rows.count(), 3)
    await shows('research', 'get_order', 'gives up')
    await assertLooks(page, 'run tree')
    // Going to a step inside a folded group opens the group.
    await page.keyboard.press(']')
    await page.keyboard.press(']')
    await page.getByRole('complementary', { name: 'Step' }).getByText('try 1', { exact: true }).waitFor()
    await page.waitForFunction(() => document.querySelectorAll('[role=listitem]').length === 8)
    await page.keyboard.press('o')
    await page.getByRole('complementary', { name: 'Step' }).getByText('try 0', { exact: true }).waitFor()
    await page.waitForFunction(() => document.querySelectorAll('[role=listitem]').length === 3)
    await page.keyboard.press('Escape')
    const arrow = rows.first().getByRole('button', { name: 'Steps of research' })
    const target = await arrow.boundingBox()
    assert.ok(target && target.width >= 24 && target.height >= 24, 'the arrow has room for a finger')
    await arrow.click()
    await rows.first().getByText('6 steps').waitFor()
    await shows('research', 'gives up')
    // Keys move through the rows in the order on the screen.
    for (const label of ['research', 'gives up']) {
      await page.keyboard.press('j')
      await page.getByRole('complementary', { name: 'Step' }).getByRole('heading', { name: label }).waitFor()
    }
    await close()
  })

  test('a print has every step of the run, and not only those in sight', async () => {
    const printed = Array.from({ length: 400 }, (_, at) =>
      event({ runId: 'printed', label: `step-${at}`, timestamp: Date.now() - 9_000 + at }),
    )
    for (let at = 0; at < printed.length; at += 100) await record(printed.slice(at, at + 100))
    const { page, close } = await tacho.open(`${tacho.home}/runs/printed`)
    await page.getByText('400 steps').first().waitFor()
    const rows = page.locator('section table tbody tr')
    assert.equal(await rows.count(), 0)
    await page.emulateMedia({ media: 'print' })
    await page.getByText(/^All 400 steps, \w+ \d+, \d{4}, [\d:]+ \w+ to .*, without payloads\./).waitFor()
    assert.equal(await rows.count(), 400)
    for (const name of ['Compare…', 'Copy id', 'Table', 'More'])
      assert.equal(await page.getByRole('button', { name, exact: true }).isVisible(), false, name)
    // A printed page shows times instead of ages.
    const started = page.getByRole('definition').locator('time').first()
    const shown = await started.evaluate((time) => getComputedStyle(time, '::after').content)
    assert.match(shown, /\d{4}, [\d:]+/)
    assert.ok(await rows.last().getByText('step-399').isVisible())
    assert.equal(await page.getByRole('banner').isVisible(), false)
    await page.emulateMedia({ media: 'screen' })
    await rows.first().waitFor({ state: 'detached' })
    await close()
  })

  test('dragging over the strip, the wheel and keys zoom into the time of a run; a double click shows all of it', async () => {
    await record(refund('zoomed', Date.now() - 60_000))
    const { page, close } = await tacho.open(`${tacho.home}/runs/zoomed`, WIDE)
    await page.getByText('9 steps').last().waitFor()
    await page.getByRole('note', { name: 'Why it failed' }).getByText('Failed at step 6').waitFor()
    // Find the strip's place for each click, because parts above it load later and move it.
    const at = async (part: number) => {
      const box = await page.getByRole('slider').boundingBox()
      assert.ok(box)
      return [box.x + box.width * part, box.y + box.height / 2] as const
    }
    await page.mouse.move(...(await at(0.55)))
    await page.mouse.down()
    await page.mouse.move(...(await at(0.7)))
    await page.mouse.move(...(await at(0.9)))
    await page.mouse.up()
    const whole = page.getByRole('button', { name: /^3\.\d s to 5\.\d s/ })
    await whole.waitFor()
    await page.getByText('3 of 9 steps').waitFor()
    await page.waitForFunction(() => document.querySelectorAll('[role=listitem]').length === 3)
    await assertLooks(page, 'run zoomed')
    await whole.click()
    await page.waitForFunction(() => document.querySelectorAll('[role=listitem]').length === 9)
    await page.mouse.move(...(await at(0.05)))
    for (let turn = 0; turn < 4; turn++) await page.mouse.wheel(0, -300)
    await page.waitForFunction(() => document.querySelectorAll('[role=listitem]').length < 5)
    await page.mouse.dblclick(...(await at(0.05)))
    await page.waitForFunction(() => document.querySelectorAll('[role=listitem]').length === 9)
    await page.keyboard.press('+')
    await page.keyboard.press('+')
    await page.getByRole('button', { name: / to .* ✕$/ }).waitFor()
    await page.keyboard.press('0')
    await page.waitForFunction(() => document.querySelectorAll('[role=listitem]').length === 9)
    // A click chooses the nearest step.
    await page.mouse.click(...(await at(0.995)))
    await page.getByRole('complementary', { name: 'Step' }).getByText('zoomed end', { exact: true }).first().waitFor()
    await close()
  })

  test('a model call marks what is new, a payload can be searched, and fields that are not shown are named', async () => {
    await record([
      ...refund('said', Date.now() - 60_000),
      event({
        runId: 'said',
        eventId: 'more',
        eventType: 'TOOL_CALL',
        label: 'pay',
        payload: { toolName: 'pay', input: { lines: [{ sku: 'A-7' }, { sku: 'B-9' }] }, tenant: 'acme', [HARM]: 1 },
        timestamp: Date.now() - 70_000,
      }),
    ])
    const { page, close } = await tacho.open(`${tacho.home}/runs/said?step=more`, WIDE)
    const inspector = page.getByRole('complementary', { name: 'Step' })
    await inspector.getByText('Also in the payload').getByText('tenant, <img src=x').waitFor()
    await inspector.getByRole('button', { name: 'payload', exact: true }).click()
    await inspector.getByRole('searchbox').fill('b-9')
    await inspector.getByText('1 hit', { exact: true }).waitFor()
    await inspector.getByRole('list', { name: 'Hits' }).getByText('input.lines[1].sku').waitFor()
    await assertLooks(page, 'run payload search')
    await inspector.getByRole('searchbox').fill('')
    await inspector.getByText('tenant').hover()
    await inspector.getByRole('button', { name: 'path' }).first().waitFor()
    await page.goto(`${tacho.home}/runs/said`)
    const search = page.getByRole('searchbox', { name: 'Search in the run' })
    await search.fill('NOT DELIVERED')
    await page.getByText(/^1 of \d+ steps$/).waitFor()
    await page.locator('mark', { hasText: 'not delivered' }).waitFor()
    await assertLooks(page, 'run search')
    await search.press('Enter')
    await page.waitForURL(/step=/)
    await search.fill('nowhere at all')
    await page.getByRole('heading', { name: 'No step matches', exact: true }).waitFor()
    await page.goto(`${tacho.home}/runs/said`)
    await page.getByRole('list', { name: 'Timeline' }).getByRole('button', { name: 'Decide asks for pay' }).click()
    await inspector.getByText('3 messages, 1 new').waitFor()
    await inspector.getByText('New since the model call before').waitFor()
    await inspector.getByText('delivered: no').waitFor()
    assert.equal(await inspector.getByText('You help customers.').count(), 0)
    await assertLooks(page, 'run model call')
    await inspector.getByRole('button', { name: /^Sent before/ }).click()
    await inspector.getByText('You help customers.').waitFor()
    await close()
  })

  test('messages are drawn as Markdown, without HTML, foreign images or hidden addresses, and as raw text on demand', async () => {
    const dot =
      'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    const text = [
      '# A heading\u202E',
      `Some **bold** and \`code\u202E\` and ${HARM}`,
      '[pay here](https://bank.example@evil.example/) [run](javascript:alert(1)) https://plain.example/a',
      `![remote](${tacho.service.url}/icon.svg) ![far](https://evil.example/pixel.png) ![dot](${dot})`,
      '| a | b |\n|---|---|\n| 1 | 2 |',
      '- one\n- [x] two',
    ].join('\n\n')
    await record([
      event({ runId: 'marked', eventId: 'm1', eventType: 'USER_INPUT', label: 'asks', payload: { text } }),
      event({
        runId: 'marked',
        eventId: 'm2',
        eventType: 'AGENT_STEP',
        label: 'says',
        payload: { text: `${'> '.repeat(600)}deep` },
      }),
      event({
        runId: 'marked',
        eventId: 'm3',
        eventType: 'LLM_CALL',
        label: 'sees',
        payload: {
          output: {
            role: 'assistant',
            content: [
              { type: 'text', text: 'Here it is.' },
              { type: 'image_url', image_url: { url: dot } },
              { type: 'image', source: { type: 'url', url: 'https://evil.example/pixel.png' } },
            ],
          },
        },
      }),
    ])
    const { page, close } = await tacho.open(`${tacho.home}/runs/marked?step=m1`, WIDE)
    await page.getByRole('heading', { level: 1 }).getByText('\\u202e').first().waitFor()
    const inspector = page.getByRole('complementary', { name: 'Step' })
    await inspector.locator('strong', { hasText: 'bold' }).waitFor()
    await inspector.getByText('<script>alert(1)</script>').waitFor()
    await inspector.locator('code').getByText('\\u202e').waitFor()
    const link = inspector.getByRole('link', { name: 'pay here' })
    assert.match(await link.innerText(), /\(https:\/\/bank\.example@evil\.example\/\)/)
    assert.equal(await link.getAttribute('rel'), 'noopener noreferrer nofollow')
    assert.equal(await inspector.getByRole('link', { name: 'run' }).count(), 0)
    await inspector.getByRole('link', { name: 'https://plain.example/a', exact: true }).waitFor()
    const sources = await inspector.locator('img').evaluateAll((all) => all.map((one) => (one as HTMLImageElement).src))
    assert.deepEqual(sources, [dot])
    assert.equal(await inspector.getByText('Image not loaded').count(), 2)
    assert.equal(await inspector.locator('script, iframe, h1, [onerror]').count(), 0)
    await inspector
      .getByRole('listitem')
      .filter({ hasText: /^☑ two$/ })
      .waitFor()
    await inspector.locator('strong', { hasText: 'bold' }).scrollIntoViewIfNeeded()
    await assertLooks(page, 'run markdown')
    await page.keyboard.press('j')
    await inspector.locator('blockquote').first().waitFor()
    assert.equal(await inspector.locator('blockquote').count(), 12)
    await page.keyboard.press('j')
    await inspector.getByText('Here it is.').waitFor()
    assert.equal(await inspector.locator('img').getAttribute('src'), dot)
    await inspector.getByText('https://evil.example/pixel.png').waitFor()
    await page.keyboard.press('k')
    await page.keyboard.press('k')
    await page.getByRole('button', { name: 'Plain text' }).click()
    await inspector.getByText('Some **bold** and').waitFor()
    assert.equal(await inspector.locator('strong, img').count(), 0)
    await page.reload()
    await inspector.getByText('Some **bold** and').waitFor()
    await page.keyboard.press('r')
    await inspector.locator('strong', { hasText: 'bold' }).waitFor()
    await close()
  })

  test('the run of a coding agent shows what was said, files by their end, and what a person decided', async () => {
    const calls = approvalCalls(tacho.service)
    const asked = { runId: 'coding', toolName: 'Bash', policyId: 'publishing' }
    const [rejected, open] = [(await calls.ask(asked)).body.id, (await calls.ask(asked)).body.id]
    await calls.decide(rejected, 'REJECTED', 'Not on Fridays.')
    const file = '/code/ada/mine/customers/acme/shop/packages/server/src/domain/price.ts'
    const held = (eventId: string, approvalId: string, command: string) => ({
      eventId,
      eventType: 'POLICY_DECISION',
      label: 'REQUIRE_APPROVAL Bash',
      payload: { action: 'REQUIRE_APPROVAL', toolName: 'Bash', inputHash: HASH, approvalId, input: { command } },
    })
    const steps = [
      { eventType: 'USER_INPUT', label: 'user prompt', payload: { text: 'Mend the\n price of item 7.' } },
      {
        eventType: 'TOOL_CALL',
        label: 'Edit',
        payload: { toolName: 'Edit', input: { file_path: file, old_string: 'a', new_string: 'b' } },
      },
      held('held 1', rejected, 'npm publish'),
      held('held 2', open, `npm pack ${String.fromCodePoint(0x202e)}zgt`),
      { eventType: 'AGENT_STEP', label: 'answer', payload: { text: 'The price is mended.' } },
    ]
    await record(steps.map((step, at) => event({ runId: 'coding', timestamp: Date.now() - 9_000 + at, ...step })))
    const { page, close } = await tacho.open(`${tacho.home}/runs/coding`, WIDE)
    const row = (text: string) =>
      page.getByRole('list', { name: 'Timeline' }).getByRole('listitem').filter({ hasText: text })
    await row('user prompt').getByText('Mend the price of item 7.').waitFor()
    await row('answer').getByText('The price is mended.').waitFor()
    await row('Edit').getByText('…/acme/shop/packages/server/src/domain/price.ts +1 −1').waitFor()
    await row('npm publish')
      .getByText(/rejected by ./)
      .waitFor()
    await row('npm publish').getByText('Not on Fridays.').waitFor()
    await row('npm pack').getByText('waits for approval').waitFor()
    await row('npm pack').getByText('\\u202ezgt').waitFor()
    await assertLooks(page, 'run of a coding agent')
    await close()
  })
})
