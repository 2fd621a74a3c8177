import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { NewEvent } from '../../../../src/storage/record/events.ts'
import {
  type RunCriteria,
  type RunPlace,
  type RunRanking,
  type RunRow,
  type RunScan,
  readTraits,
  traitLine,
} from '../../../../src/storage/runs/runs.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { ask } from '../approvals/approval-sample.ts'
import { append, event, llmCall, newId, NOON, outcome, runOf, sampleFailure } from '../sample.ts'

export function runListsSuite(open: OpenStorage) {
  describe('the list of runs', () => {
    const storage = sharedStorage(open)

    test('ends a page at its byte limit, with at least one row, with and without a search', async () => {
      const env = newId()
      const sessionId = 's'.repeat(300_000)
      for (let n = 0; n < 8; n++) {
        const agentName = n === 7 ? 'n'.repeat(1_500_000) : 'agent'
        await append(
          storage(),
          env,
          event({ runId: `run ${n}`, agentId: `a${n}`, agentName, sessionId, time: NOON + n }),
        )
      }
      for (const filter of [{}, { session: sessionId }, { q: 'run' }]) {
        const first = await storage().listRuns(env, filter, { limit: 100, after: null })
        assert.deepEqual([first.rows.map(({ runId }) => runId), first.more], [['run 7'], true])
        const second = await storage().listRuns(env, filter, { limit: 100, after: first.rows[0] ?? null })
        assert.equal(second.rows.length, 3)
        assert.deepEqual(
          (await walk(env, filter, 100)).map(({ runId }) => runId),
          [7, 6, 5, 4, 3, 2, 1, 0].map((n) => `run ${n}`),
        )
      }
    })

    async function walk(env: string, filter: RunCriteria, limit: number): Promise<RunRow[]> {
      const rows: RunRow[] = []
      for (let after: RunPlace | null = null; ;) {
        const page = await storage().listRuns(env, filter, { limit, after })
        rows.push(...page.rows)
        const last: RunPlace | undefined = page.lookedTo ?? page.rows.at(-1)
        if (last === undefined || !page.more) return rows
        after = { startedAt: last.startedAt, id: last.id, ...(last.rank !== undefined && { rank: last.rank }) }
      }
    }

    /** Twelve runs with pairs of equal times, two agents, two sessions and all four states. */
    async function twelveRuns() {
      const env = newId()
      const states = [null, 'COMPLETED', 'FAILED', 'CANCELLED'] as const
      for (let n = 0; n < 12; n++) {
        const about = { runId: `run ${n}`, agentId: `agent ${n % 2}`, sessionId: n % 3 === 0 ? null : `s ${n % 3}` }
        const state = states[n % 4] ?? null
        await append(storage(), env, event({ ...about, time: NOON + Math.floor(n / 2), outcome: state }))
      }
      return env
    }

    const NO_SCAN: RunScan = { runsLookedAt: 3 }

    test('can be filtered by cost, length, errors and the names that events give, alone and together', async () => {
      const env = newId()
      const refund = { traits: traitLine('tool', 'refund'), eventType: 'TOOL_CALL' }
      const marks = traitLine('tool', 'a') + traitLine('policy', 'p"1\n')
      await append(storage(), env, event({ runId: 'plain' }), outcome('COMPLETED', { runId: 'plain', time: NOON + 99 }))
      await append(storage(), env, llmCall({ costNanos: 5 }, { runId: 'dear', traits: traitLine('model', 'm') }))
      await append(storage(), env, event({ runId: 'long', ...refund }), event({ runId: 'long', time: NOON + 100 }))
      await append(
        storage(),
        env,
        event({ runId: 'bad', failure: sampleFailure(), traits: marks }),
        event({ runId: 'bad' }),
      )
      await append(storage(), env, event({ runId: 'bad', ...refund }), event({ runId: 'bad', ...refund }))
      const found = async (scan: Partial<RunScan>, filter: RunCriteria = {}) =>
        (await walk(env, { ...filter, scan: { ...NO_SCAN, ...scan } }, 2)).map(({ runId }) => runId).toSorted()
      assert.deepEqual(await found({}), ['bad', 'dear', 'long', 'plain'])
      assert.deepEqual(
        [await found({ minCost: '0.000000005' }), await found({ minCost: '0.000000006' })],
        [['dear'], []],
      )
      assert.deepEqual(await found({ minLengthMs: 99 }), ['long', 'plain'])
      assert.deepEqual(await found({ minLengthMs: 100 }), ['long'])
      assert.deepEqual(await found({ hasErrors: 'true' }), ['bad'])
      assert.deepEqual(await found({ tool: 'refund' }), ['bad', 'long'])
      assert.deepEqual(await found({ tool: 'refund', policyId: 'p"1\n' }), ['bad'])
      assert.deepEqual(await found({ tool: 'refund', minLengthMs: 1 }, { q: 'lo' }), ['long'])
      for (const tool of ['refun', 'efund', 'm', 'refund"', '\n', 'REFUND']) {
        assert.deepEqual(await found({ tool }), [], tool)
      }
      const { traits, errorCount } = await runOf(storage(), env, 'bad')
      assert.deepEqual(readTraits(traits ?? ''), { ...readTraits(''), tool: ['a', 'refund'], policy: ['p"1\n'] })
      assert.equal(errorCount, 1)
    })

    test('examines a bounded number of runs for a page, and says where to continue', async () => {
      const env = newId()
      const runs = [1, 2, 3].map((n) => event({ runId: `run ${n}`, time: NOON + n }))
      await append(storage(), env, event({ runId: 'last', failure: sampleFailure() }), ...runs)
      for (const filter of [{}, { agent: 'Support bot' }, { q: 'Support bot' }]) {
        const scanned = { ...filter, scan: { ...NO_SCAN, hasErrors: 'true' as const } }
        const first = await storage().listRuns(env, scanned, { limit: 5, after: null })
        assert.deepEqual([first.rows, first.more, first.lookedTo?.startedAt], [[], true, NOON + 1])
        const rest = await storage().listRuns(env, scanned, { limit: 5, after: first.lookedTo ?? null })
        assert.deepEqual([rest.rows.map(({ runId }) => runId), rest.more], [['last'], false])
        const both = { ...scanned, scan: { ...scanned.scan, runsLookedAt: 4 } }
        const all = await storage().listRuns(env, both, { limit: 5, after: null })
        assert.deepEqual([all.rows.length, all.lookedTo?.startedAt], [1, NOON])
      }
    })

    test('can be filtered by requests for approval, alone and together', async () => {
      const env = newId()
      for (const runId of ['asked', 'asked twice', 'not asked']) await append(storage(), env, event({ runId }))
      for (const runId of ['asked', 'asked twice', 'asked twice', 'unknown', null]) {
        await ask(storage(), env, { runId })
      }
      const found = async (filter: RunCriteria) =>
        (await walk(env, { ...filter, approvalsLookedAt: 5 }, 1)).map(({ runId }) => runId).toSorted()
      assert.deepEqual(await found({}), ['asked', 'asked twice'])
      assert.deepEqual(await found({ q: 'asked t' }), ['asked twice'])
      assert.deepEqual(await found({ status: 'FAILED' }), [])
      assert.deepEqual(await found({ scan: { ...NO_SCAN, minLengthMs: 1 } }), [])
      assert.deepEqual(await found({ q: 'not' }), [])
    })

    test('is ordered newest first, then by internal id; each page continues where the last ended', async () => {
      const env = await twelveRuns()
      const rows = await walk(env, {}, 100)
      assert.equal(rows.length, 12)
      const sorted = rows.toSorted((a, b) => b.startedAt - a.startedAt || (a.id < b.id ? 1 : -1))
      assert.deepEqual(rows, sorted)
      for (const limit of [1, 2, 5, 12]) assert.deepEqual(await walk(env, {}, limit), rows)
    })

    /** Runs with different values: r<n> has n of everything, but r3 to r5 have the same. Their starts are in another order. */
    async function rankedRuns() {
      const env = newId()
      for (const [place, n] of [4, 0, 6, 3, 1, 5, 2, 7].entries()) {
        const much = n >= 3 && n <= 5 ? 4 : n
        const start = NOON + place * 1_000
        const about = {
          runId: `r${n}`,
          agentId: n % 2 ? 'odd' : 'even',
          sessionId: n < 4 ? 'small' : null,
          time: start,
        }
        const failed = Array.from({ length: much }, () => event({ ...about, failure: sampleFailure() }))
        await append(storage(), env, ...failed, llmCall({ costNanos: much, totalTokens: much }, about))
        if (n < 7) await append(storage(), env, outcome('COMPLETED', { ...about, time: start + much }))
      }
      return env
    }

    test('is ordered by cost, length, tokens and failures: the greatest first, of runs that ended and have some', async () => {
      const env = await rankedRuns()
      const equal = (await walk(env, {}, 100)).filter(({ runId }) => /[345]/.test(runId))
      const middle = equal.toSorted((a, b) => (a.id < b.id ? 1 : -1)).map(({ runId }) => runId)
      const all = ['r6', ...middle, 'r2', 'r1']
      const odd = all.filter((runId) => ['r1', 'r3', 'r5'].includes(runId))
      for (const by of ['cost', 'length', 'tokens', 'failures'] as const) {
        for (const runsLookedAt of [1, 3, 100]) {
          const rankedBy: RunRanking = { by, runsLookedAt }
          for (const limit of [1, 2, 7]) {
            const found = async (filter: RunCriteria) =>
              (await walk(env, { ...filter, rankedBy }, limit)).map(({ runId }) => runId)
            const what = `${by} ${runsLookedAt} ${limit}`
            assert.deepEqual(await found({}), all, what)
            assert.deepEqual(await found({ agent: 'odd' }), odd, what)
            assert.deepEqual(await found({ status: 'COMPLETED', session: 'small' }), ['r3', 'r2', 'r1'], what)
            assert.deepEqual(await found({ status: 'FAILED' }), [], what)
            assert.deepEqual(await found({ from: NOON + 1_000, to: NOON + 5_000 }), ['r6', 'r3', 'r1'], what)
            const scan = { ...NO_SCAN, runsLookedAt, minLengthMs: 2 }
            assert.deepEqual(await found({ scan }), ['r6', ...middle, 'r2'], what)
            assert.deepEqual(await found({ scan, agent: 'odd' }), odd.slice(0, 2), what)
            assert.deepEqual(await found({ q: 'r3' }), ['r3'], what)
            assert.deepEqual(await found({ q: 'odd' }), odd, what)
          }
        }
      }
    })

    test('examines a bounded number of runs in another order too, unless few match an index', async () => {
      const env = await rankedRuns()
      const rankedBy = { by: 'cost', runsLookedAt: 3 } as const
      const first = (filter: RunCriteria) => storage().listRuns(env, { ...filter, rankedBy }, { limit: 9, after: null })
      // The three most expensive runs of all are scanned. Of this agent's four runs, these include r6 and perhaps r4.
      const many = await first({ agent: 'even' })
      assert.deepEqual([many.rows[0]?.runId, many.more, many.lookedTo?.rank], ['r6', true, 4])
      const three = { from: NOON + 1_000, to: NOON + 4_000 }
      const few = await first(three)
      assert.deepEqual([few.rows.map(({ runId }) => runId), few.more], [['r6', 'r3'], false])
      const fourth = await first({ ...three, to: NOON + 4_001 })
      assert.equal(fourth.more, true)
    })

    test('follows a run that changes after its end, and forgets an end by the stalled rule', async () => {
      const env = await rankedRuns()
      const dearest = async () =>
        (await walk(env, { rankedBy: { by: 'cost', runsLookedAt: 9 } }, 9)).map(({ runId }) => runId)[0]
      assert.equal(await dearest(), 'r6')
      await append(storage(), env, llmCall({ costNanos: 50 }, { runId: 'r1', time: NOON }))
      assert.equal(await dearest(), 'r1')
      await append(storage(), env, outcome('COMPLETED', { runId: 'r7', time: NOON + 8_000 }))
      assert.equal(await dearest(), 'r1')
      await append(storage(), env, llmCall({ costNanos: 90 }, { runId: 'r7', time: NOON }))
      assert.equal(await dearest(), 'r7')
    })

    test('contains one environment only', async () => {
      const env = await twelveRuns()
      assert.deepEqual((await storage().listRuns(newId(), {}, { limit: 100, after: null })).rows, [])
      assert.equal((await walk(env, {}, 100)).length, 12)
    })

    test('can be filtered by agent, status, session and time, alone and together', async () => {
      const env = await twelveRuns()
      const rows = await walk(env, {}, 100)
      const agentId = rows.find(({ agentExternalId }) => agentExternalId === 'agent 1')?.agentId ?? ''
      const filters: [RunCriteria, (row: RunRow) => boolean][] = [
        [{ agentId }, (row) => row.agentId === agentId],
        [{ status: 'RUNNING' }, (row) => row.status === 'RUNNING'],
        [{ status: 'FAILED' }, (row) => row.status === 'FAILED'],
        [{ session: 's 1' }, (row) => row.sessionId === 's 1'],
        [{ from: NOON + 2 }, (row) => row.startedAt >= NOON + 2],
        [{ to: NOON + 2 }, (row) => row.startedAt < NOON + 2],
        [{ from: NOON + 1, to: NOON + 4 }, (row) => row.startedAt >= NOON + 1 && row.startedAt < NOON + 4],
        [
          { agentId, status: 'CANCELLED', from: NOON + 1, to: NOON + 5, session: 's 1' },
          (row) =>
            row.agentId === agentId && row.status === 'CANCELLED' && row.sessionId === 's 1' && row.startedAt > NOON,
        ],
        [{ agentId: newId() }, () => false],
        [{ agent: 'agent 1' }, (row) => row.agentId === agentId],
        [{ agent: 'Support bot', status: 'CANCELLED' }, (row) => row.status === 'CANCELLED'],
        [{ agent: 'agent 1', agentId: newId() }, () => false],
        [{ session: 'unknown' }, () => false],
      ]
      for (const [filter, fits] of filters) {
        const expected = rows.filter(fits)
        for (const limit of [1, 3, 100]) assert.deepEqual(await walk(env, filter, limit), expected)
      }
    })

    test('can be searched by the start of a run id and by whole session ids, agent ids and agent names', async () => {
      const env = newId()
      const stored: Partial<NewEvent>[] = [
        { runId: 'order-1' },
        { runId: 'order-10', sessionId: 'order-1' },
        { runId: 'other', sessionId: 'order-1' },
        { runId: 'Order-1' },
        { runId: 'order_1' },
        { runId: 'by id', agentId: 'order-1', agentName: 'Clerk' },
        { runId: 'by name', agentName: 'order-1' },
        { runId: 'by id and name', agentId: 'clerk-2', agentName: 'order-1' },
        { runId: 'session longer', sessionId: 'order-10' },
        { runId: 'last \u{10ffff}' },
        { runId: 'last \u{10ffff}\u{10ffff}!' },
        { runId: '\u{10ffff}' },
      ]
      for (const [n, given] of stored.entries()) await append(storage(), env, event({ ...given, time: NOON + n }))
      const found = async (search: string, filter: RunCriteria = {}) =>
        (await walk(env, { q: search, ...filter }, 100)).map(({ runId }) => runId)
      assert.deepEqual(await found('order-1'), ['by id and name', 'by name', 'by id', 'other', 'order-10', 'order-1'])
      assert.deepEqual(await found('order'), ['order_1', 'order-10', 'order-1'])
      assert.deepEqual(await found('order_'), ['order_1'])
      assert.deepEqual(await found('order%'), [])
      assert.deepEqual(await found('rder'), [])
      assert.deepEqual(await found('Clerk'), ['by id'])
      assert.deepEqual(await found('last \u{10ffff}'), ['last \u{10ffff}\u{10ffff}!', 'last \u{10ffff}'])
      assert.deepEqual(await found('\u{10ffff}'), ['\u{10ffff}'])
      assert.deepEqual((await storage().listRuns(newId(), { q: 'order' }, { limit: 9, after: null })).rows, [])

      assert.deepEqual(await found('order-1', { from: NOON + 1, to: NOON + 6 }), ['by id', 'other', 'order-10'])
      assert.deepEqual(await found('order-1', { session: 'order-1' }), ['other', 'order-10'])
      assert.deepEqual(await found('order-1', { session: 'order-10' }), [])
      assert.deepEqual(await found('order-1', { status: 'FAILED' }), [])
      const { agentId } = await runOf(storage(), env, 'by id')
      assert.deepEqual(await found('order-1', { agentId }), ['by id'])
      for (const limit of [1, 2, 4, 6]) {
        const rows = await walk(env, { q: 'order-1' }, limit)
        assert.deepEqual(
          rows.map(({ runId }) => runId),
          await found('order-1'),
        )
      }
    })

    test('searches at most 1,000 runs whose ids start with a text: the last ones', async () => {
      const env = newId()
      const runs = Array.from({ length: LIMITS.searchedRunIds + 1 }, (_, n) => {
        return event({ runId: `r-${String(n).padStart(5, '0')}`, time: NOON - n })
      })
      await append(storage(), env, ...runs)
      const rows = await walk(env, { q: 'r-' }, 400)
      assert.equal(rows.length, LIMITS.searchedRunIds)
      assert.deepEqual([rows[0]?.runId, rows.at(-1)?.runId], ['r-00001', `r-0${LIMITS.searchedRunIds}`])
      assert.equal((await walk(env, { q: 'r-00000' }, 400)).length, 1)
    })

    test('pages through every run stored before the first page, whatever is stored meanwhile', async () => {
      const env = await twelveRuns()
      const before = await walk(env, {}, 100)
      const { rows: first } = await storage().listRuns(env, {}, { limit: 4, after: null })
      const last = first.at(-1)
      assert.ok(last)
      await append(
        storage(),
        env,
        event({ runId: 'new', time: NOON + 100 }),
        event({ runId: 'run 11', time: NOON - 1 }),
      )
      const after = { startedAt: last.startedAt, id: last.id }
      const { rows: rest } = await storage().listRuns(env, {}, { limit: 100, after })
      const seen = new Set([...first, ...rest].map(({ runId }) => runId))
      for (const { runId } of before) assert.ok(seen.has(runId), runId)
    })
  })
}
