/** Runs by their scores: lists, orders and sums. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { ScoreFilter } from '@tacho/contract/runs/score-filter.ts'
import type { NewEvent } from '../../../../src/storage/record/events.ts'
import type { RunCriteria, RunPlace, RunScan } from '../../../../src/storage/runs/runs.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { append, event, HOUR, newEnvironment, newId, NOON, scored } from '../sample.ts'

const MOST = { pairs: 100, rows: 100 }
const SCAN: RunScan = { runsLookedAt: 100 }

export function scoredRunsSuite(open: OpenStorage) {
  describe('runs by their scores', () => {
    const storage = sharedStorage(open)

    async function judged(): Promise<string> {
      const env = newId()
      const runs: [string, ...NewEvent[]][] = [
        ['a', scored('accuracy', 0.9, { runId: 'a' }), scored('helpful', true, { runId: 'a' })],
        ['b', scored('accuracy', 0.1, { runId: 'b' }), scored('helpful', false, { runId: 'b' })],
        ['c', scored('accuracy', -3, { runId: 'c' }), scored('tone', 'rude', { runId: 'c' })],
        ['d', scored('accuracy', 'none', { runId: 'd' }), scored('helpful', 1, { runId: 'd' })],
        ['e'],
      ]
      for (const [index, [runId, ...scores]] of runs.entries()) {
        await append(
          storage(),
          env,
          event({ runId, time: NOON + index, agentId: runId < 'c' ? 'one' : 'two' }),
          ...scores,
        )
      }
      return env
    }

    const found = async (env: string, filter: RunCriteria) => {
      const { rows } = await storage().listRuns(env, { scan: SCAN, ...filter }, { limit: 100, after: null })
      return rows.map(({ runId }) => runId).join('')
    }

    test('are found by name, number, yes or no, and category', async () => {
      const env = await judged()
      const cases: [ScoreFilter, string][] = [
        [{ name: 'accuracy', compare: null, value: null }, 'dcba'],
        [{ name: 'accuracy', compare: '<', value: 0.1 }, 'c'],
        [{ name: 'accuracy', compare: '<=', value: 0.1 }, 'cb'],
        [{ name: 'accuracy', compare: '>', value: 0.1 }, 'a'],
        [{ name: 'accuracy', compare: '>=', value: 0.1 }, 'ba'],
        [{ name: 'accuracy', compare: '=', value: 0.9 }, 'a'],
        [{ name: 'accuracy', compare: '=', value: 'none' }, 'd'],
        [{ name: 'helpful', compare: '=', value: true }, 'a'],
        [{ name: 'helpful', compare: '=', value: false }, 'b'],
        [{ name: 'tone', compare: '=', value: 'rude' }, 'c'],
        [{ name: 'constructor', compare: null, value: null }, ''],
      ]
      for (const [score, runs] of cases) assert.equal(await found(env, { score }), runs, JSON.stringify(score))
      assert.equal(await found(env, { unscored: 'helpful' }), 'ec')
      assert.equal(await found(env, { unscored: 'helpful', score: { name: 'tone', compare: null, value: null } }), 'c')
      assert.equal(await found(env, { score: { name: 'accuracy', compare: null, value: null }, agent: 'one' }), 'ba')
      assert.equal(await found(env, { score: { name: 'accuracy', compare: null, value: null }, q: 'c' }), 'c')
      assert.equal(await found(newId(), { score: { name: 'accuracy', compare: null, value: null } }), '')
    })

    test('come in the order of a score, page by page, and those with its categories alone do not', async () => {
      const env = await judged()
      const score: ScoreFilter = { name: 'accuracy', compare: null, value: null }
      const walk = async (filter: RunCriteria, scan = SCAN, limit = 1) => {
        let [ids, after] = ['', null as RunPlace | null]
        for (let pages = 0; pages < 20; pages++) {
          const page = await storage().listRuns(env, { scan, score, ...filter }, { limit, after })
          ids += page.rows.map(({ runId }) => runId).join('')
          if (!page.more) return ids
          after = page.lookedTo ?? page.rows.at(-1) ?? after
        }
        throw new Error('The walk does not end')
      }
      assert.equal(await walk({ scoreOrder: 'lowest' }), 'cba')
      assert.equal(await walk({ scoreOrder: 'highest' }), 'abc')
      assert.equal(await walk({ scoreOrder: 'lowest', agent: 'one' }), 'ba')
      assert.equal(await walk({ scoreOrder: 'highest', q: 'b' }), 'b')
      assert.equal(await walk({ scoreOrder: 'highest', status: 'COMPLETED' }), '')
      assert.equal(await walk({ scoreOrder: 'lowest', score: { ...score, compare: '>', value: 0 } }), 'ba')
      // After a page that ends at the scan limit, the next page continues there.
      const one = { ...SCAN, runsLookedAt: 1 }
      assert.equal(await walk({ scoreOrder: 'lowest', score: { ...score, compare: '>', value: 0.5 } }, one, 10), 'a')
      assert.equal(await walk({ score: { ...score, compare: '>', value: 0.5 } }, one, 10), 'a')
    })

    test('are the same share each time, about as large as asked for', async () => {
      const env = newId()
      for (let start = 0; start < 400; start += 100) {
        const events = Array.from({ length: 100 }, (_, n) => event({ runId: `${start + n}`, time: NOON + start + n }))
        await append(storage(), env, ...events)
      }
      const scan = { ...SCAN, runsLookedAt: 1_000 }
      const ids = async (share: number) => {
        const { rows } = await storage().listRuns(env, { scan, share }, { limit: 500, after: null })
        return new Set(rows.map(({ id }) => id))
      }
      const [tenth, half, all] = [await ids(10), await ids(50), await ids(100)]
      assert.ok(tenth.size >= 15 && tenth.size <= 75, `${tenth.size} of 400`)
      assert.ok(half.size >= 150 && half.size <= 250, `${half.size} of 400`)
      assert.equal(all.size, 400)
      assert.ok(tenth.isSubsetOf(half))
      assert.deepEqual(await ids(10), tenth)
    })

    test('add up by agent and prompt version, within a time', async () => {
      const env = await newEnvironment(storage())
      const { workspaceId } = (await storage().findEnvironment(env)) ?? assert.fail('no environment')
      const [one, two] = [newId(), newId()]
      const uses = [one, one, two]
      for (const [n, versionId] of uses.entries()) {
        const runId = `run ${n}`
        const promptUse = { versionId, problem: null }
        await append(
          storage(),
          env,
          event({ runId, promptUse, agentId: `agent ${n % 2}`, agentName: `Agent ${n % 2}` }),
          scored('accuracy', n, { runId }),
          scored('tone', n === 2 ? 'kind' : 'rude', { runId }),
        )
      }
      await append(storage(), env, scored('accuracy', 100, { runId: 'run 2', time: NOON + 3 * HOUR, author: 'late' }))
      const window = { from: NOON, to: NOON + HOUR }
      const read = async (by: 'agent' | 'promptVersion' | null) => {
        const { rows, isCut } = await storage().sumScores({ environmentId: env, workspaceId }, { ...window, by }, MOST)
        assert.equal(isCut, false)
        return rows.map(({ key, keyName, name, category, given, numbers, total }) => {
          return [by === 'promptVersion' ? [one, two].indexOf(key) : keyName, name, category, given, numbers, total]
        })
      }
      assert.deepEqual(await read(null), [
        ['', 'accuracy', null, 2, 2, 1],
        ['', 'tone', 'rude', 2, 0, 0],
        ['', 'tone', 'kind', 1, 0, 0],
      ])
      const byAgent = (await read('agent')).toSorted((a, b) => (String(a) < String(b) ? -1 : 1))
      assert.deepEqual(byAgent, [
        ['Agent 0', 'accuracy', null, 1, 1, 0],
        ['Agent 0', 'tone', 'kind', 1, 0, 0],
        ['Agent 0', 'tone', 'rude', 1, 0, 0],
        ['Agent 1', 'accuracy', null, 1, 1, 1],
        ['Agent 1', 'tone', 'rude', 1, 0, 0],
      ])
      const byVersion = (await read('promptVersion')).toSorted((a, b) => (String(a) < String(b) ? -1 : 1))
      assert.deepEqual(byVersion, [
        [0, 'accuracy', null, 2, 2, 1],
        [0, 'tone', 'rude', 2, 0, 0],
        [1, 'tone', 'kind', 1, 0, 0],
      ])
      const cut = await storage().sumScores(
        { environmentId: env, workspaceId },
        { ...window, by: null },
        { ...MOST, pairs: 2 },
      )
      assert.equal(cut.isCut, true)
      const [first, second] = await storage().readVersionResults(env, [one, two], 100)
      assert.deepEqual(
        first?.scores.map(({ name, runs, numbers, total }) => [name, runs, numbers, total]),
        [
          ['accuracy', 2, 2, 1],
          ['tone', 2, 0, 0],
        ],
      )
      assert.deepEqual(
        second?.scores.map(({ name, total }) => [name, total]),
        [
          ['accuracy', 51],
          ['tone', 0],
        ],
      )
    })

    test('add up in a bounded number of rows, however many names and categories clients choose', async () => {
      const env = await newEnvironment(storage())
      const { workspaceId } = (await storage().findEnvironment(env)) ?? assert.fail('no environment')
      for (let n = 0; n < 30; n++) {
        const runId = `run ${n}`
        const tone = scored('tone', n < 3 ? 'rude' : `tone ${String(n).padStart(2, '0')}`, { runId })
        await append(
          storage(),
          env,
          event({ runId }),
          tone,
          scored(`name ${n}`, n, { runId }),
          scored('mix', n, { runId }),
        )
      }
      const window = { from: NOON, to: NOON + HOUR, by: null }
      const read = (rows: number) =>
        storage().sumScores({ environmentId: env, workspaceId }, window, { pairs: 100, rows })
      const { rows, isCut } = await read(100)
      const tones = rows.filter(({ name }) => name === 'tone')
      assert.deepEqual([isCut, rows.length], [false, LIMITS.scoreCategories + 31])
      assert.deepEqual([tones.length, tones[0]?.category, tones[0]?.given, tones[0]?.runs], [20, 'rude', 3, 30])
      const few = await read(2)
      assert.deepEqual([few.isCut, few.rows], [true, [rows.find(({ name }) => name === 'mix'), tones[0]]])
      assert.deepEqual([few.rows[0]?.numbers, few.rows[0]?.total], [30, 435])
    })

    test('are named by environment, each name once', async () => {
      const env = newId()
      for (const runId of ['a', 'b']) {
        await append(
          storage(),
          env,
          event({ runId }),
          scored('tone', 'kind', { runId }),
          scored('accuracy', 1, { runId }),
        )
      }
      const names = await storage().listScoreNames(env, 10)
      assert.deepEqual(
        names.map(({ name, kind }) => [name, kind]),
        [
          ['accuracy', 'NUMBER'],
          ['tone', 'CATEGORY'],
        ],
      )
      assert.equal((await storage().listScoreNames(env, 1)).length, 1)
      assert.deepEqual(await storage().listScoreNames(newId(), 10), [])
    })
  })
}
