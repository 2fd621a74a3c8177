/** The overview begins with sentences about what got worse, which link to the runs, or says that all is well. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { approvalCalls } from '../../server/test/setup/approval-service.ts'
import { configurationCalls } from '../../server/test/setup/configuration-service.ts'
import { event } from '../../server/test/setup/service.ts'
import { alikeIssues, changedAt, deployedThen, mostCause, roseWords } from '../src/runs/overview/verdicts.ts'
import { scaleOf } from '../src/web/ui/chart-series.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, startConsole, type TestConsole } from './setup/console.ts'

const HOUR_MS = 3_600_000

test('one busy hour does not flatten the rest of a chart', () => {
  assert.equal(scaleOf([4, 5, 6, 5, 4, 6, 5, 400]), 12)
  assert.equal(scaleOf([4, 5, 6, 5, 4, 6, 5, 14]), 14)
  assert.equal(scaleOf([1, 1, 1, 1, 1, 1, 12]), 12)
  assert.equal(scaleOf([5, 400]), 400)
  assert.equal(scaleOf([0, 0]), 0)
})

test('issues come by the runs that they affect, and titles that differ in an id stand together', () => {
  const issues = [
    ['No order a-…', 6],
    ['Payment failed', 7],
    ['No order A-…', 9],
    ['No order …', 2],
    ['No order the last one', 6],
    ['Error 503 of 10.0.0.1', 1],
  ] as const
  const kinds = alikeIssues(issues.map(([title, affectedRuns]) => ({ title, affectedRuns })))
  assert.deepEqual(
    kinds.map(({ issue, others }) => [issue.title, ...others.map(({ title }) => title)]),
    [
      ['No order A-…', 'No order a-…', 'No order …'],
      ['Payment failed'],
      ['No order the last one'],
      ['Error 503 of 10.0.0.1'],
    ],
  )
})

test('the most frequent cause has the tool and the status, and failures without an error say so', () => {
  const failure = (name: string | null, message: string | null) => ({
    failure: {
      errorClass: null,
      message,
      place: name === null ? ('run' as const) : ('tool' as const),
      name,
      eventId: '',
    },
  })
  const cause = mostCause([
    failure('refund_payment', 'Provider answered 503'),
    failure('refund_payment', 'HTTP 503 Service Unavailable'),
    failure('get_order', 'No order A-1'),
  ])
  assert.deepEqual([cause?.text, cause?.runs, cause?.tool], ['refund_payment 503', 2, 'refund_payment'])
  const masked = mostCause([failure('get_order', 'No order A-1'), failure('get_order', 'No order B-2')])
  assert.deepEqual([masked?.text, masked?.runs], ['get_order: No order …', 2])
  assert.equal(mostCause([{ failure: null }])?.text, 'failed by its recorded outcome')
  assert.equal(mostCause([]), null)
  const newest = mostCause([
    { failure: null, runId: 'b' },
    { failure: null, runId: 'a' },
  ])
  assert.deepEqual([newest?.runs, newest?.runId], [2, 'b'])
})

test('a cost changes where the runs before and after differ the most, and names the deployment of that time', () => {
  const step = (hour: number, runs: number, cost: number) => ({
    from: new Date(hour * HOUR_MS).toISOString(),
    runs,
    usage: { cost: runs * cost, totalTokens: 1 },
    estimatedCost: null,
    unpricedCalls: 0,
    priceTable: null,
  })
  const steps = [step(1, 5, 0.01), step(2, 9, 0.012), step(3, 0, 0), step(4, 4, 0.02), step(5, 8, 0.022)]
  const at = changedAt(steps)
  assert.deepEqual(at, { at: 4 * HOUR_MS, after: 2 * HOUR_MS })
  assert.equal(changedAt([step(1, 5, 0.01)]), null)
  const change = (kind: 'prompt' | 'policy', hour: number) =>
    ({ kind, at: new Date(hour * HOUR_MS).toISOString(), to: '2' }) as Parameters<typeof deployedThen>[0][number]
  assert.equal(deployedThen([change('policy', 3.4), change('prompt', 3.5)], at!, HOUR_MS)?.kind, 'prompt')
  assert.equal(deployedThen([change('prompt', 1), change('prompt', 6)], at!, HOUR_MS), null)
  assert.deepEqual([1.3, 2, 3, 4.2].map(roseWords), ['rose by 30 %', 'doubled', 'tripled', 'rose 4.2-fold'])
})

describe('the overview', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  let moved = 0
  before(async () => {
    tacho = await startConsole({}, () => Date.now() + moved)
  })
  after(() => tacho.close())

  const asked = (runId: string, hoursAgo: number, cost: number, error: string | null) => {
    const start = Date.now() - hoursAgo * HOUR_MS
    const of = { runId, agentId: 'support', agentName: 'Shop support' }
    const usage = { promptTokens: 90, completionTokens: 10, totalTokens: 100 }
    const status = error === null ? 'COMPLETED' : 'FAILED'
    return [
      event({ ...of, eventType: 'LLM_CALL', timestamp: start, payload: { model: 'small', cost, usage } }),
      event({
        ...of,
        eventType: 'TOOL_CALL',
        timestamp: start + 1,
        payload: { toolName: 'refund_payment', ...(error !== null && { error }) },
      }),
      event({ ...of, eventType: 'SESSION_OUTCOME', timestamp: start + 2, payload: { status } }),
    ]
  }
  const record = async (events: ReturnType<typeof asked>) => {
    const { status, text } = await tacho.service.record(events)
    assert.ok(status < 300, text)
  }

  test('what is wrong comes first, with its share before, its cause, and the prompt that was deployed then', async () => {
    const { newPrompt, pushPrompt, deploy } = await configurationCalls(tacho.service)
    const { promptId, name } = await newPrompt()
    await pushPrompt(promptId, 'Explain at length')
    moved = -11 * HOUR_MS
    assert.equal((await deploy([['prompt', promptId, '2']])).status, 200)
    moved = 0
    const runs = Array.from({ length: 40 }, (_, n) => n)
    for (const n of runs) {
      const cost = 0.01 + (n % 5) / 10_000
      await record([
        ...asked(`before-${n}`, 27 + (n % 19), cost, n < 4 ? 'Provider answered 503' : null),
        ...asked(`now-${n}`, 1 + (n % 9), 2 * cost, n < 20 ? 'Provider answered 503' : null),
      ])
    }
    const { page, close } = await tacho.open()
    const wrong = page.getByRole('region', { name: 'What is wrong' })
    const failures = wrong.getByRole('listitem').filter({ hasText: 'ended runs failed' })
    await failures
      .filter({
        hasText: /^▲50 % of ended runs failed \(10 % in the 24 hours before\)[.] Most: refund_payment 503, 20 runs[.]$/,
      })
      .waitFor()
    const cost = wrong.getByRole('listitem').filter({ hasText: 'Cost per run of Shop support doubled since' })
    await cost
      .filter({ hasText: `with prompt ${name} v2` })
      .filter({ hasText: '$0.0204 a run ($0.0102' })
      .waitFor()
    const tile = page.getByRole('link').filter({ hasText: /^Failed20\(50 %\)▲ more often: 4 \(10 %\)/ })
    await tile.waitFor()
    const issue = page.getByRole('region', { name: 'Open issues' })
    await issue.getByText('24 runs, 24 times').waitFor()
    await issue.getByRole('img', { name: /^24 times in the last 14 days/ }).waitFor()
    await assertLooks(page, 'what is wrong')
    await failures.getByRole('link', { name: 'refund_payment 503' }).click()
    await page.waitForURL(/runs[?].*status=FAILED&tool=refund_payment/)
    await page.waitForFunction(() => document.querySelectorAll('[role=row] a').length === 20)
    await page.goBack()
    await cost.getByRole('link', { name: /doubled/ }).click()
    await page.waitForURL(/runs[?].*order=cost/)
    await close()
  })

  test('requests that expired undecided are counted among those that ended', async () => {
    const { ask, decide } = approvalCalls(tacho.service)
    const first = await ask({ timeoutMs: 60_000 })
    assert.equal(first.status, 201, first.text)
    assert.ok((await decide(first.body.id, 'REJECTED')).status < 300)
    moved = -HOUR_MS
    for (const inputHash of ['cd', 'ef']) {
      assert.equal((await ask({ timeoutMs: 60_000, inputHash: inputHash.repeat(32) })).status, 201)
    }
    moved = 0
    const { page, close } = await tacho.open()
    const sentence = page.getByRole('listitem').filter({ hasText: '2 of 3 requests expired undecided' })
    await sentence.getByRole('link').click()
    await page.waitForURL(/approvals[?].*status=EXPIRED/)
    await close()
  })

  test('if nothing got worse, the overview says so, and what it looked at', async () => {
    const { environmentId } = await tacho.service.newTenant('calm')
    const key = await tacho.service.newKey({ scopes: ['events:write'], environmentId })
    await tacho.service.record([...asked('calm-1', 2, 0.01, null), ...asked('calm-2', 30, 0.01, null)], key)
    const { page, close } = await tacho.open(`${tacho.service.url}/w/calm/production`)
    await page.waitForURL(/[/]w[/]/)
    const well = page.getByRole('region', { name: 'Nothing got worse' })
    await well.getByText('Looked at: 1 ended run, none of which failed; 0 requests for approval').waitFor()
    await close()
  })

  test('a time without any run after one with many is wrong too', async () => {
    const { environmentId } = await tacho.service.newTenant('silent')
    const key = await tacho.service.newKey({ scopes: ['events:write'], environmentId })
    const runs = Array.from({ length: 20 }, (_, at) => asked(`before-${at}`, 30, 0.01, null))
    await tacho.service.record(runs.flat(), key)
    const { page, close } = await tacho.open(`${tacho.service.url}/w/silent/production`)
    const wrong = page.getByRole('region', { name: 'What is wrong' })
    await wrong.getByText('No run started in this time; 20 did in the 24 hours before.').waitFor()
    await close()
  })
})
