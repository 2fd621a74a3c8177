/**
 * Twelve questions of a first week, asked through the API, the commands and the console. The true answers are known. The events
 * cover 29 days with the end of summer time in Europe and America and the end of a month. Simple code computes each figure
 * from the raw events.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import type { IssuePage } from '@tacho/contract/issues/issue.ts'
import type { OperatorRunPage } from '@tacho/contract/runs/operator-run.ts'
import type { UsagePoint, UsagePointPage } from '@tacho/contract/runs/usage.ts'
import { runCommand } from '../../../cli/test/tacho.ts'
import { eventually } from '../../../server/test/setup/eventually.ts'
import { reviewed } from '../../../server/test/setup/issue-service.ts'
import { event } from '../../../server/test/setup/service.ts'
import { withoutChromium } from '../setup/chromium.ts'
import { startConsole, type TestConsole } from '../setup/console.ts'

const HOUR_MS = 3_600_000
const NOW = Date.parse('2026-11-16T12:00:00Z')
/** Midnight in Berlin, before and after the end of summer time. */
const FROM = Date.parse('2026-10-17T22:00:00Z')
const TO = Date.parse('2026-11-15T23:00:00Z')
const WEEK = Date.parse('2026-11-09T00:00:00Z')
const PRICE = { input: 3, output: 15 }
const iso = (time: number) => new Date(time).toISOString()

interface RawEvent {
  runId: string
  agentId: string
  eventType: string
  timestamp: number
  payload: {
    userId?: string
    runTags?: string[]
    model?: string
    cost?: number
    usage?: { promptTokens: number; completionTokens: number; totalTokens: number }
    latency?: number
    toolName?: string
    input?: object
    error?: { name: string; message: string }
    status?: string
  }
}

/** A generator of the same pseudo-random numbers in each run. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const AGENTS = ['support', 'billing', 'research'] as const
const MODELS = ['house', 'large', 'mystery'] as const

/** 200 runs: with sent costs, with costs by the price of `house`, and with unknown costs. */
function rawRuns(): RawEvent[][] {
  const random = randomOf(2026)
  const among = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)]!
  return Array.from({ length: 200 }, (_, n) => {
    const agentId = AGENTS[n % 3]!
    const began = FROM + Math.floor(((TO - FROM - HOUR_MS) * n) / 200)
    const events: RawEvent[] = []
    const add = (eventType: string, payload: RawEvent['payload']) => {
      events.push({ runId: `run-${n}`, agentId, eventType, timestamp: began + events.length * 1_000, payload })
    }
    add('USER_INPUT', { userId: `customer-${n % 7}`, runTags: [n < 100 ? 'v1' : 'v2'] })
    for (let calls = 1 + Math.floor(random() * 3); calls > 0; calls--) {
      const model = among(MODELS)
      const [promptTokens, completionTokens] = [100 + Math.floor(random() * 5_000), 10 + Math.floor(random() * 900)]
      const usage = { promptTokens, completionTokens, totalTokens: promptTokens + completionTokens }
      const cost = model === 'large' ? { cost: Math.round(random() * 50_000) / 1e6 } : {}
      add('LLM_CALL', { model, usage, ...cost, latency: Math.round(50 + 4_000 * random() ** 3) })
    }
    const isLooping = n % 40 === 7
    for (let calls = isLooping ? 6 : 1; calls > 0; calls--) {
      // `ship` fails only in the last week, and only for one agent.
      const isNew = began >= WEEK && agentId === 'billing'
      const toolName = isLooping ? 'search' : isNew ? 'ship' : among(['search', 'pay'])
      const isFailed = isNew ? !isLooping : !isLooping && random() < 0.2
      const error = isFailed ? { error: { name: 'TimeoutError', message: `${toolName} took too long` } } : {}
      add('TOOL_CALL', { toolName, input: { order: isLooping ? 1 : n }, latency: Math.round(900 * random()), ...error })
    }
    const isFailed = events.some(({ payload }) => payload.error) || random() < (n < 100 ? 0.05 : 0.1)
    add('SESSION_OUTCOME', { status: isFailed ? 'FAILED' : n % 29 === 3 ? 'CANCELLED' : 'COMPLETED' })
    return events
  })
}

const RUNS = rawRuns()

interface Truth {
  runs: number
  failed: number
  sent: number
  estimated: number
  unpriced: number
  tokens: number
}

/** Sums costs in whole billionths of a dollar. */
function sumOf(runs: readonly RawEvent[][]): Truth {
  const sum = { runs: runs.length, failed: 0, sent: 0, estimated: 0, unpriced: 0, tokens: 0 }
  for (const events of runs) {
    for (const { eventType, payload } of events) {
      if (payload.status === 'FAILED') sum.failed++
      if (eventType !== 'LLM_CALL' || !payload.usage) continue
      const { promptTokens, completionTokens, totalTokens } = payload.usage
      sum.tokens += totalTokens
      if (payload.cost !== undefined) sum.sent += Math.round(payload.cost * 1e9)
      else if (payload.model === 'house')
        sum.estimated += (promptTokens * PRICE.input + completionTokens * PRICE.output) * 1_000
      else sum.unpriced++
    }
  }
  return sum
}

const groups = (keyOf: (events: readonly RawEvent[]) => string) =>
  [...Map.groupBy(RUNS, keyOf)].map(([key, runs]) => [key, sumOf(runs)] as const)
const whole = ({ sent, estimated }: Truth) => (sent + estimated) / 1e9
const userOf = ([first]: readonly RawEvent[]) => first!.payload.userId!
const agentOf = ([first]: readonly RawEvent[]) => first!.agentId
const dayOf = (zone: string) => {
  const format = new Intl.DateTimeFormat('en-CA', { timeZone: zone, dateStyle: 'short' })
  return (time: number) => format.format(time)
}
const byKey = <Row extends readonly [string, unknown]>(rows: readonly Row[]) =>
  rows.toSorted(([a], [b]) => (a < b ? -1 : 1))
/** The exact percentile, as the nearest rank. */
const percentile = (values: readonly number[], share: number) =>
  values.toSorted((a, b) => a - b)[Math.ceil(values.length * share) - 1]!

describe('twelve questions of a first week', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  before(async () => {
    const begun = Date.now()
    // The clock runs, because the job handles failures a moment later.
    tacho = await startConsole({}, () => NOW + Date.now() - begun)
    const { service } = tacho
    const { items } = (await service.operator<{ items: { id: string }[] }>('/workspaces')).body
    await service.operator(`/workspaces/${items[0]?.id}/prices/set`, { body: { model: 'house', ...PRICE } })
    const all = RUNS.flat().map((raw) => event({ ...raw, agentName: raw.agentId }))
    for (let start = 0; start < all.length; start += 100) {
      assert.equal((await service.record(all.slice(start, start + 100))).body.success, true)
    }
    await reviewed(service)
  })
  after(() => tacho.close())

  const read = async <Body>(path: string) => {
    const { service } = tacho
    const { status, body, text } = await service.operator<Body>(`/environments/${service.environmentId}${path}`)
    assert.equal(status, 200, text)
    return body
  }
  const points = async (query: string) => {
    const window = query.includes('from=') ? '' : `from=${iso(FROM)}&to=${iso(TO)}&`
    const { items, nextCursor } = await read<UsagePointPage>(`/usage/points?${window}limit=2000&${query}`)
    assert.equal(nextCursor, null)
    return items
  }
  const command = async <Body>(...args: string[]): Promise<Body> => {
    const variables = { TACHO_URL: tacho.service.url, TACHO_OPERATOR_TOKEN: tacho.service.operatorToken }
    const { code, stdout, stderr } = await runCommand([...args, '--json'], variables)
    assert.equal(code, 0, stderr)
    return JSON.parse(stdout) as Body
  }
  type Sum = UsagePoint['usage'] & Omit<UsagePoint, 'usage'>
  const commandSums = async (...args: string[]) =>
    (await command<{ items: Sum[] }>('usage', '--from', iso(FROM), '--to', iso(TO), ...args)).items
  const truthOf = ({ runs, failed, usage, estimatedCost, unpricedCalls }: Omit<UsagePoint, 'from'>): Truth => ({
    runs,
    failed,
    sent: Math.round(usage.cost * 1e9),
    estimated: Math.round((estimatedCost ?? 0) * 1e9),
    unpriced: unpricedCalls,
    tokens: usage.totalTokens,
  })
  const commandTruth = (sum: Sum) => truthOf({ ...sum, usage: sum })

  test('cost by agent, by user and by version, in the API and the commands', async () => {
    for (const [by, keyOf] of [
      ['agent', agentOf],
      ['user', userOf],
      ['tag', ([first]: readonly RawEvent[]) => first!.payload.runTags![0]!],
    ] as const) {
      const expected = byKey(groups(keyOf))
      const found = await points(`by=${by}&step=window`)
      assert.deepEqual(byKey(found.map((point) => [point.name!, truthOf(point)] as const)), expected, by)
      const sums = await commandSums('--by', by, '--limit', '100')
      assert.deepEqual(byKey(sums.map((sum) => [sum.key, commandTruth(sum)] as const)), expected, by)
    }
  })

  test('the bill of one customer in one month', async () => {
    const november = Date.parse('2026-11-01T00:00:00Z')
    const bill = sumOf(RUNS.filter((run) => userOf(run) === 'customer-3' && run[0]!.timestamp >= november))
    const query = `from=${iso(november)}&to=${iso(TO)}&by=user&user=customer-3&step=window`
    assert.deepEqual((await points(query)).map(truthOf), [bill])
    const args = ['--user', 'customer-3', '--from', '2026-11-01', '--to', iso(TO)]
    const { items } = await command<{ items: Sum[] }>('usage', ...args)
    assert.deepEqual(items.map(commandTruth), [bill])
  })

  test('cost by model, and how long half and 95 % of its calls take', async () => {
    const calls = Map.groupBy(
      RUNS.flat().filter(({ eventType }) => eventType === 'LLM_CALL'),
      ({ payload }) => payload.model!,
    )
    const found = (await points('by=model&step=window')).filter(({ name }) => name !== '')
    const sums = await commandSums('--by', 'model')
    assert.deepEqual(found.map(({ name }) => String(name)).toSorted(), [...calls.keys()].toSorted())
    for (const [model, events] of calls) {
      const { sent, estimated, unpriced, tokens } = sumOf([events])
      const latencies = events.map(({ payload }) => payload.latency!)
      const point = found.find(({ name }) => name === model)!
      const sum = sums.find(({ key }) => key === model)!
      for (const { truth, latency } of [
        { truth: truthOf(point), latency: point.llmLatency! },
        { truth: commandTruth(sum), latency: sum.llmLatency! },
      ]) {
        assert.deepEqual(truth, { runs: 0, failed: 0, sent, estimated, unpriced, tokens }, model)
        assert.equal(latency.calls, events.length)
        for (const [shown, share] of [
          [latency.p50Ms, 0.5],
          [latency.p95Ms, 0.95],
        ] as const) {
          const exact = percentile(latencies, share)
          assert.ok(Math.abs(shown - exact) <= exact * 0.0101, `${model} ${share}: ${shown}, exactly ${exact}`)
        }
      }
    }
  })

  test('cost by month and failed runs by day, in zones whose clocks change', async () => {
    for (const zone of ['Europe/Berlin', 'America/New_York', 'UTC']) {
      const day = dayOf(zone)
      const daysOf = (run: readonly RawEvent[]) => day(run[0]!.timestamp)
      const perDay = byKey(groups(daysOf)).map(([key, { failed }]) => [key, failed])
      const days = Map.groupBy(await points(`by=agent&step=day&zone=${zone}`), ({ from }) => day(Date.parse(from)))
      const shown = [...days].map(([key, of]) => [key, of.reduce((sum, { failed }) => sum + failed, 0)] as const)
      assert.deepEqual(byKey(shown), perDay, zone)
      // Costs and tokens count at the time of their calls.
      const months = Map.groupBy(RUNS.flat(), ({ timestamp }) => day(timestamp).slice(0, 7))
      const expected = byKey([...months].map(([key, events]) => [key, sumOf([events])] as const))
      const sums = await commandSums('--by', 'month', '--zone', zone)
      assert.deepEqual(
        sums.map((sum) => {
          const { sent, estimated, unpriced, tokens } = commandTruth(sum)
          return [sum.key, sent, estimated, unpriced, tokens]
        }),
        expected.map(([key, { sent, estimated, unpriced, tokens }]) => [key, sent, estimated, unpriced, tokens]),
        zone,
      )
    }
  })

  test('failed calls by tool, dearest agent and runs, runs that loop, new issues and approvals', async () => {
    const tools = byKey(
      [
        ...Map.groupBy(
          RUNS.flat().filter(({ eventType }) => eventType === 'TOOL_CALL'),
          ({ payload }) => payload.toolName!,
        ),
      ].map(
        ([tool, calls]) => [tool, `${calls.length} ${calls.filter(({ payload }) => payload.error).length}`] as const,
      ),
    )
    const toolRow = ({ events, calls }: Pick<UsagePoint, 'events' | 'calls'>) => `${events} ${calls?.failed}`
    const found = (await points('by=tool&step=window')).filter(({ name }) => name !== '')
    assert.deepEqual(byKey(found.map((point) => [point.name!, toolRow(point)] as const)), tools)
    const commandTools = (await commandSums('--by', 'tool')).filter(({ key }) => key !== '')
    assert.deepEqual(byKey(commandTools.map((sum) => [sum.key, toolRow(sum)] as const)), tools)

    const dearest = groups(agentOf).toSorted(([, a], [, b]) => whole(b) - whole(a))
    const ranked = await points('by=agent&step=window&sort=cost')
    assert.deepEqual(ranked.map(({ name }) => name), dearest.map(([name]) => name)) // prettier-ignore

    const costs = groups(([first]) => first!.runId).toSorted(([, a], [, b]) => whole(b) - whole(a))
    const top = (await read<OperatorRunPage>('/runs?sort=cost&limit=10')).items
    assert.deepEqual(top.map(({ runId }) => runId), costs.slice(0, 10).map(([runId]) => runId)) // prettier-ignore

    const looping = RUNS.filter((run) => run.filter(({ payload }) => payload.input).length > 5).map(([of]) => of!.runId)
    const listed = (await read<OperatorRunPage>('/runs?loops=true&limit=200')).items
    assert.deepEqual(listed.map(({ runId }) => runId).toSorted(), looping.toSorted())
    const named = await command<{ items: { runId: string }[] }>('runs', 'list', '--loops')
    assert.deepEqual(named.items.map(({ runId }) => runId).toSorted(), looping.toSorted())

    // Each agent has its own issue with the same title, so the list names the agent.
    const ofAgents = new Set(RUNS.filter(([first]) => looping.includes(first!.runId)).map(agentOf))
    const loopIssues = await eventually(async () => {
      const { items } = await read<IssuePage>('/issues?detectionType=LOOP_DETECTED')
      return items.reduce((sum, { affectedRuns }) => sum + affectedRuns, 0) === looping.length ? items : undefined
    }, 'the issues of the loops')
    assert.deepEqual(new Set(loopIssues.flatMap(({ agentIds }) => agentIds)), ofAgents)

    const shipped = RUNS.flat().filter(({ payload }) => payload.toolName === 'ship' && payload.error)
    const newIssues = async () => (await read<IssuePage>(`/issues?sort=firstSeen&firstFrom=${iso(WEEK)}`)).items
    const ship = await eventually(
      async () =>
        (await newIssues()).find(
          ({ title, affectedRuns }) => title.includes('ship') && affectedRuns === shipped.length,
        ),
      'the issue of the new failures',
    )
    assert.deepEqual([ship.firstSeenAt, ship.agentIds], [iso(shipped[0]!.timestamp), ['billing']])
    assert.equal(
      (await newIssues()).some(({ firstSeenAt }) => Date.parse(firstSeenAt) < WEEK),
      false,
    )
    const { items: ofWeek } = await command<{ items: { id: string }[] }>('issues', 'list', '--new', iso(WEEK))
    assert.deepEqual(ofWeek.map(({ id }) => id), (await newIssues()).map(({ id }) => id)) // prettier-ignore

    const { service } = tacho
    for (let asked = 0; asked < 6; asked++) {
      const body = { clientRequestId: randomUUID(), toolName: 'pay', inputHash: 'ab'.repeat(32), timeoutMs: HOUR_MS }
      const reply = await service.api<{ id: string }>('/firewall-approvals', {
        body,
        headers: { 'x-service-client-id': 'client' },
      })
      const path = `/environments/${service.environmentId}/approvals/${reply.body.id}/decision`
      const decision = asked < 2 ? 'APPROVED' : 'REJECTED'
      if (asked < 3) assert.equal((await service.operator(path, { body: { decision } })).status, 200)
    }
    for (const [status, count] of [
      ['PENDING', 3],
      ['APPROVED', 2],
      ['REJECTED', 1],
    ] as const) {
      assert.equal((await read<{ items: unknown[] }>(`/approvals?status=${status}`)).items.length, count, status)
      const { items } = await command<{ items: unknown[] }>('approvals', 'list', '--status', status)
      assert.equal(items.length, count, status)
    }
  })

  test('the pages have the same figures', async () => {
    const window = `from=${iso(FROM)}&to=${iso(TO)}`
    const { page, close } = await tacho.open(`${tacho.home}/usage?by=agent&${window}`, { timezoneId: 'Europe/Berlin' })
    const cells = async (name: string, head: string, table = 'Sums') => {
      const rows = page.getByRole('table', { name: table })
      const heads = await rows.getByRole('columnheader').allTextContents()
      const row = rows.getByRole('row').filter({ has: page.getByText(name, { exact: true }) })
      return (await row.getByRole('cell').nth(heads.indexOf(head)).textContent()) ?? ''
    }
    const figure = (text: string) => Number(/[0-9][0-9,.]*/.exec(text.replaceAll(',', ''))?.[0])
    const near = (text: string, { sent, estimated, unpriced }: Truth) => {
      assert.ok(Math.abs(figure(text) - (sent + estimated) / 1e9) < 0.0051, `${text}, ${sent + estimated}`)
      assert.equal(text.includes(unpriced > 0 ? 'at least' : '≈'), unpriced > 0 || estimated > 0, text)
    }
    await page.getByRole('table', { name: 'Sums' }).waitFor()
    for (const [agent, truth] of groups(agentOf)) {
      near(await cells(agent, 'Cost'), truth)
      assert.equal(figure(await cells(agent, 'Tokens')), truth.tokens)
      assert.equal(figure(await cells(agent, 'Runs')), truth.runs)
      assert.equal(figure(await cells(agent, 'Failed')), truth.failed)
    }
    const headline = page
      .getByRole('figure', { name: /^cost by agent/ })
      .locator('p')
      .first()
    const shown = (await headline.textContent()) ?? ''
    near(shown, sumOf(RUNS))
    await page.goto(`${tacho.home}/usage?by=user&${window}`)
    for (const [user, truth] of groups(userOf)) {
      await page.getByRole('table', { name: 'Sums' }).getByText(user, { exact: true }).waitFor()
      near(await cells(user, 'Cost'), truth)
    }
    await page.goto(`${tacho.home}/usage?by=agent&show=outcomes&${window}`)
    const outcomes = page.getByRole('figure', { name: /^outcomes/ })
    const failed = outcomes.getByRole('listitem').filter({ hasText: 'Failed' })
    assert.equal(figure((await failed.textContent()) ?? ''), sumOf(RUNS).failed)
    await page.goto(`${tacho.home}/agents?${window}`)
    const [dearest] = groups(agentOf).toSorted(([, a], [, b]) => whole(b) - whole(a))
    await page.getByRole('row').nth(1).getByText(dearest![0], { exact: true }).waitFor()
    await page.goto(`${tacho.home}/runs?loops=true`)
    const looping = RUNS.filter((run) => run.length > 8 && run.filter(({ payload }) => payload.input).length > 5)
    const rows = page.getByRole('table', { name: 'Runs' }).getByRole('row')
    await rows.filter({ hasText: looping[0]![0]!.runId }).waitFor()
    assert.equal(await rows.count(), looping.length + 1)
    await close()
  })
})
