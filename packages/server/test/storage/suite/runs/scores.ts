/** Scores of runs: the latest of each name, step and author, and the sums of a run. scored-runs.ts tests lists by scores. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { advanceErasure } from '../../../../src/domain/data/erasure.ts'
import { DAY_MS } from '../../../../src/storage/engine/times.ts'
import { KEEP_ALL } from '../../../../src/storage/data/retention.ts'
import { scoreId, type ScoreRow } from '../../../../src/storage/runs/scores.ts'
import { newErasure } from '../data/erasure-sample.ts'
import { auditEntry } from '../issues/issue-sample.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { append, batch, event, HOUR, newEnvironment, newId, NOON, outcome, runOf, scored } from '../sample.ts'

export function operatorScore(
  run: string,
  name: string,
  value: number | boolean | string,
  given: Partial<ScoreRow> = {},
) {
  const { name: _, ...said } = scored(name, value).score!
  const of = { run, eventId: null, name, authorKind: 'operator', authorId: 'ada', ...given }
  const { kind, number, category } = said
  const rest = {
    kind,
    number,
    category,
    comment: null,
    authorName: 'Ada',
    scoredAt: NOON,
    sentAs: null,
    importedAt: null,
  }
  return { ...rest, ...of, id: scoreId(of) } satisfies ScoreRow
}

export function scoresSuite(open: OpenStorage) {
  describe('a score', () => {
    const storage = sharedStorage(open)

    const listed = async (env: string, runId = 'run') => {
      const { id } = await runOf(storage(), env, runId)
      const { rows } = await storage().listScores(env, id, { limit: 1_000, after: null })
      return rows
    }
    const values = async (env: string, runId = 'run') => {
      const rows = (await listed(env, runId)).map(({ name, number, category }) => [name, category ?? number])
      return rows.toSorted((a, b) => (String(a) < String(b) ? -1 : 1))
    }
    const sums = async (env: string, runId = 'run') => {
      const { id } = await runOf(storage(), env, runId)
      const scores = (await storage().readRunScores(env, [id])).get(id) ?? []
      return Object.fromEntries(scores.map(({ name, number, category, count }) => [name, [number, category, count]]))
    }

    test('is the latest of its name, step and author, in whatever order and batches they arrive', async () => {
      const late = scored('helpful', true, { author: 'user-1', comment: 'thanks', time: NOON + 9 })
      const sent = [
        late,
        scored('helpful', false, { author: 'user-1', time: NOON + 2 }),
        scored('helpful', false, { author: 'user-2', time: NOON + 3 }),
        scored('helpful', 0.25, { target: 'step', time: NOON + 4 }),
        scored('tone', 'rude', { time: NOON + 5 }),
        scored('tone', 'kind', { time: NOON + 6, target: 'step' }),
      ]
      for (const events of [sent, sent.toReversed()]) {
        for (const one of [[events], events.map((each) => [each])]) {
          const env = newId()
          await append(storage(), env, event())
          for (const some of one) await append(storage(), env, ...some)
          assert.deepEqual(await values(env), [
            ['helpful', 0],
            ['helpful', 0.25],
            ['helpful', 1],
            ['tone', 'kind'],
            ['tone', 'rude'],
          ])
          assert.deepEqual(await sums(env), { helpful: [1.25 / 3, null, 3], tone: [null, 'kind', 2] })
          const [mine] = (await listed(env)).filter(({ authorId }) => authorId === 'user-1')
          const { id } = await runOf(storage(), env)
          const of = { run: id, eventId: null, name: 'helpful', authorKind: 'client', authorId: 'user-1' }
          const said = { kind: 'BOOLEAN', number: 1, category: null, comment: 'thanks', authorName: 'user-1' }
          const given = { scoredAt: NOON + 9, sentAs: late.eventId, importedAt: null }
          assert.deepEqual(mine, { id: scoreId(of), ...of, ...said, ...given })
        }
      }
    })

    test('of another judge is hidden from one who has not judged the same; the runs that several judged are read', async () => {
      const env = newId()
      await append(storage(), env, event(), scored('helpful', true, { author: 'user-1' }), event({ runId: 'other' }))
      const [run, other] = [(await runOf(storage(), env)).id, (await runOf(storage(), env, 'other')).id]
      const give = (name: string, value: boolean | string, given: object) =>
        storage().giveScore(env, operatorScore(run, name, value, given), [])
      await give('helpful', false, { authorId: 'ada' })
      await give('helpful', true, { authorId: 'ada', eventId: 'step' })
      await give('helpful', true, { authorId: 'ben' })
      await give('tone', 'rude', { authorId: 'ben' })
      const hiddenFrom = async (id: string) => {
        const rows = await storage().readHiddenScores(env, [run, other], { kind: 'operator', id })
        return rows.map(({ name, eventId, count }) => `${name} ${eventId} ${count}`).toSorted()
      }
      assert.deepEqual(await hiddenFrom('ada'), ['tone null 1'])
      assert.deepEqual(await hiddenFrom('ben'), ['helpful step 1'])
      assert.deepEqual(await hiddenFrom('cora'), ['helpful null 2', 'helpful step 1', 'tone null 1'])
      assert.deepEqual(await storage().readHiddenScores(newId(), [run], { kind: 'operator', id: 'cora' }), [])

      const unjudgedBy = async (id: string) => {
        const filter = {
          scan: { runsLookedAt: 100 },
          unjudged: { name: 'tone', by: { kind: 'operator', id } },
        }
        const { rows } = await storage().listRuns(env, filter, { limit: 10, after: null })
        return rows.map(({ runId }) => runId).toSorted()
      }
      assert.deepEqual([await unjudgedBy('ben'), await unjudgedBy('ada')], [['other'], ['other', 'run']])

      const window = { from: NOON, to: NOON + HOUR }
      const judged = await storage().readJudged(env, { name: 'helpful', ...window })
      const shown = judged.map(({ runId, authorId, eventId, number }) => [runId, authorId, eventId, number].join(' '))
      assert.deepEqual(shown.toSorted(), ['run ada  0', 'run ada step 1', 'run ben  1', 'run user-1  1'])
      assert.deepEqual(await storage().readJudged(env, { name: 'tone', ...window }), [])
      const of = { environmentId: env, workspaceId: newId() }
      const { rows } = await storage().sumScores(of, { ...window, by: 'author' }, { pairs: 100, rows: 100 })
      assert.deepEqual(rows.map(({ key, name, runs, total }) => `${key}: ${name} ${runs} ${total}`).toSorted(), [
        'client user-1: helpful 1 1',
        'operator ada: helpful 2 1',
        'operator ben: helpful 1 1',
        'operator ben: tone 1 0',
      ])
    })

    test('changes the sums of its run as if they were computed again from all scores', async () => {
      const numbers = [0.1, 0.2, 1e16, 0.3, -1e16, 1 / 3, 1e-300]
      const sent = numbers.map((value, n) => scored('helpful', value, { author: `${n}`, time: NOON + n }))
      const later = sent.map((_, n) =>
        scored('helpful', n === 2 ? 'good' : n / 7, { author: `${n}`, time: NOON + 10 + n }),
      )
      const seen: unknown[] = []
      for (const events of [
        [...sent, ...later],
        [...later, ...sent],
        [...later.toReversed(), ...sent],
      ]) {
        const env = newId()
        for (let at = 0; at < events.length; at += 3) await append(storage(), env, ...events.slice(at, at + 3))
        const { id } = await runOf(storage(), env)
        const changed = await storage().readRunScores(env, [id])
        // An operator's score and its withdrawal compute the sums again.
        const given = operatorScore(id, 'helpful', 0.7)
        assert.equal(await storage().giveScore(env, given, []), 'given')
        assert.notDeepEqual(await storage().readRunScores(env, [id]), changed)
        await storage().withdrawScore(env, id, given.id, null, [])
        assert.deepEqual(await storage().readRunScores(env, [id]), changed)
        seen.push(...(changed.get(id) ?? []))
      }
      const mean = numbers.reduce((sum, _, n) => (n === 2 ? sum : sum + n), 0) / 7 / 6
      const row = { name: 'helpful', kind: 'NUMBER', number: mean, category: null, count: 7, scoredAt: NOON + 16 }
      assert.deepEqual(seen, [row, row, row])
    })

    test('that is sent again counts once', async () => {
      const env = newId()
      const one = scored('helpful', 1)
      assert.deepEqual(await append(storage(), env, event(), one, one), ['stored', 'stored', 'duplicate'])
      assert.deepEqual(await append(storage(), env, one), ['duplicate'])
      assert.deepEqual(await sums(env), { helpful: [1, null, 1] })
    })

    test('is no activity of its run, makes no agent, and opens no run that the stalled rule closed', async () => {
      const env = await newEnvironment(storage())
      const feedback = { agentName: 'feedback', agentId: 'feedback' }
      await append(storage(), env, event({ agentId: 'bot' }), outcome('COMPLETED', { agentId: 'bot', time: NOON + 5 }))
      await append(storage(), env, scored('helpful', 1, { ...feedback, time: NOON + HOUR }))
      await append(storage(), env, scored('helpful', 0, { ...feedback, author: 'early', time: NOON - HOUR }))
      const run = await runOf(storage(), env)
      assert.deepEqual(
        [run.startedAt, run.lastEventAt, run.endedAt, run.agentExternalId, run.eventCount],
        [NOON, NOON + 5, NOON + 5, 'bot', 4],
      )
      const open = event({ runId: 'silent', agentId: 'bot' })
      await append(storage(), env, open)
      await storage().changeStalledRule(env, { idleMinutes: 5, closeAs: 'FAILED' }, NOON, [])
      await storage().closeStalledRuns(env, NOON + HOUR, null)
      const closed = await runOf(storage(), env, 'silent')
      assert.equal(closed.status, 'FAILED')
      await append(storage(), env, scored('helpful', 0, { ...feedback, runId: 'silent', time: NOON + HOUR }))
      assert.deepEqual(await runOf(storage(), env, 'silent'), { ...closed, eventCount: 2 })
      assert.deepEqual(await sums(env, 'silent'), { helpful: [0, null, 1] })
      // A batch that opens the run, with its score first.
      await append(
        storage(),
        env,
        scored('helpful', 1, { ...feedback, runId: 'new' }),
        event({ runId: 'new', agentId: 'bot' }),
      )
      assert.equal((await runOf(storage(), env, 'new')).agentExternalId, 'bot')
      const { rows: agents } = await storage().listAgents(env, { limit: 10, after: null }, { withArchived: false })
      assert.deepEqual(
        agents.map(({ externalId }) => externalId),
        ['bot'],
      )
    })

    test('that arrives before its run opens it', async () => {
      const env = newId()
      await append(storage(), env, scored('helpful', 1, { time: NOON + 7 }))
      await append(storage(), env, event({ time: NOON }))
      const { startedAt, eventCount, status } = await runOf(storage(), env)
      assert.deepEqual([startedAt, eventCount, status], [NOON, 2, 'RUNNING'])
      assert.deepEqual(await sums(env), { helpful: [1, null, 1] })
    })

    test('has a limit in number and in names, and those that are there can still change', async () => {
      const env = newId()
      const names = Array.from({ length: LIMITS.scoreNamesOfRun + 3 }, (_, n) =>
        scored(`n${String(n).padStart(2, '0')}`, n),
      )
      await append(storage(), env, event(), ...names)
      assert.equal(Object.keys(await sums(env)).length, LIMITS.scoreNamesOfRun)
      for (let start = 0; start < LIMITS.scoresOfRun + 100; start += 100) {
        const authors = Array.from({ length: 100 }, (_, n) =>
          scored('n00', 1, { author: `${start + n}`, time: NOON + 1 }),
        )
        await append(storage(), env, ...authors)
      }
      assert.equal((await listed(env)).length, LIMITS.scoresOfRun)
      await append(
        storage(),
        env,
        scored('n00', 5, { author: '0', time: NOON + 2 }),
        scored('n00', 5, { author: 'another' }),
      )
      const mine = (await listed(env)).filter(({ authorId }) => authorId === '0' || authorId === 'another')
      assert.deepEqual(
        mine.map(({ number }) => number),
        [5],
      )
      const { id } = await runOf(storage(), env)
      assert.equal(await storage().giveScore(env, operatorScore(id, 'n00', 1), []), 'too_many')
    })

    test('is imported only while there is room', async () => {
      const env = await newEnvironment(storage())
      await append(storage(), env, event(), scored('n00', 1))
      const { id } = await runOf(storage(), env)
      const rows = Array.from({ length: LIMITS.scoreNamesOfRun + 1 }, (_, n) => {
        const { importedAt: __, ...row } = operatorScore(id, `n${String(n).padStart(2, '0')}`, n)
        return row
      })
      const written = LIMITS.scoreNamesOfRun
      assert.deepEqual(await storage().importRows(env, 'score', rows, NOON), { outcome: 'imported', written })
      assert.equal(Object.keys(await sums(env)).length, LIMITS.scoreNamesOfRun)
      assert.deepEqual((await sums(env))['n00'], [0.5, null, 2])
      assert.deepEqual(await storage().importRows(env, 'score', rows, NOON), { outcome: 'imported', written: 0 })
    })

    test('of an operator replaces their own, with an audit entry, and can be withdrawn; that of a client cannot', async () => {
      const env = await newEnvironment(storage())
      await append(storage(), env, event(), scored('quality', 0.5))
      const { id } = await runOf(storage(), env)
      const give = (value: number, given = {}) =>
        storage().giveScore(env, operatorScore(id, 'quality', value, given), [auditEntry(env, 'run.score')])
      assert.equal(await give(0), 'given')
      assert.equal(await give(1, { comment: 'better', scoredAt: NOON - 5 }), 'given')
      assert.equal(await give(0, { authorId: 'bob' }), 'given')
      assert.deepEqual(await sums(env), { quality: [0.5, null, 3] })
      const other = newId()
      assert.equal(await storage().giveScore(other, operatorScore(id, 'quality', 1), []), 'no_run')
      assert.equal(await storage().giveScore(env, operatorScore(newId(), 'quality', 1), []), 'no_run')
      const audit = await storage().listAudit(null, { limit: 100, after: null }, { action: 'run.score' })
      assert.equal(audit.rows.filter(({ environmentId }) => environmentId === env).length, 3)

      const mine = operatorScore(id, 'quality', 1, { comment: 'better', scoredAt: NOON - 5 })
      const withdraw = (scoreId: string, by: string | null, from = env) =>
        storage().withdrawScore(from, id, scoreId, by, [])
      assert.equal(await withdraw(mine.id, 'bob'), 'foreign')
      assert.equal(await withdraw(mine.id, null, other), null)
      assert.deepEqual(await withdraw(mine.id, 'ada'), mine)
      assert.equal(await withdraw(mine.id, 'ada'), null)
      const sent = (await listed(env)).find(({ sentAs }) => sentAs !== null)
      assert.equal(await withdraw(sent!.id, null), 'sent')
      assert.deepEqual(await sums(env), { quality: [0.25, null, 2] })
      assert.deepEqual((await withdraw(operatorScore(id, 'quality', 0, { authorId: 'bob' }).id, null)) !== null, true)
      assert.deepEqual(await sums(env), { quality: [0.5, null, 1] })
    })

    test('leaves no sum when the last of its name is withdrawn', async () => {
      const env = newId()
      await append(storage(), env, event())
      const { id } = await runOf(storage(), env)
      const score = operatorScore(id, 'quality', 'good')
      await storage().giveScore(env, score, [])
      assert.deepEqual(
        (await storage().listScoreNames(env, 10)).map(({ name, kind }) => [name, kind]),
        [['quality', 'CATEGORY']],
      )
      await storage().withdrawScore(env, id, score.id, null, [])
      assert.deepEqual(await sums(env), {})
      assert.deepEqual(await storage().listScoreNames(env, 10), [])
    })

    test('is given by several at once without a lost sum', async () => {
      const env = newId()
      await append(storage(), env, event())
      const { id } = await runOf(storage(), env)
      const people = Array.from({ length: 8 }, (_, n) => operatorScore(id, 'quality', n, { authorId: `${n}` }))
      const clients = Array.from({ length: 8 }, (_, n) => scored('quality', n, { author: `user ${n}` }))
      await Promise.all([
        ...people.map((score) => storage().giveScore(env, score, [])),
        ...clients.map((score) => append(storage(), env, score)),
      ])
      assert.deepEqual(await sums(env), { quality: [3.5, null, 16] })
    })
  })

  describe('scores of a removed run', () => {
    const storage = sharedStorage(open)

    test('go with it, and none comes back with a late retry', async () => {
      const env = await newEnvironment(storage())
      const late = scored('accuracy', 1)
      await append(storage(), env, event(), late)
      const { id } = await runOf(storage(), env)
      await storage().giveScore(env, operatorScore(id, 'quality', 1, { comment: 'a secret' }), [])
      const erasure = newErasure(env, { kind: 'run', subject: 'run' })
      await storage().createErasure(erasure, [])
      await advanceErasure(storage(), {
        environmentId: env,
        id: erasure.id,
        now: () => NOON + 60_000,
        isOver: () => false,
      })
      assert.deepEqual((await storage().listScores(env, id, { limit: 10, after: null })).rows, [])
      assert.equal((await storage().readRunScores(env, [id])).size, 0)
      assert.deepEqual(await storage().listScoreNames(env, 10), [])
      assert.equal(await storage().giveScore(env, operatorScore(id, 'quality', 1), []), 'no_run')
      assert.deepEqual(await append(storage(), env, late), ['erased'])
      assert.deepEqual(await storage().listScoreNames(env, 10), [])
    })

    test('lose their comments with its payloads', async () => {
      const [workspaceId, env] = [newId(), newId()]
      await storage().createWorkspace({ id: workspaceId, name: workspaceId, createdAt: NOON }, [])
      await storage().createEnvironment({ id: env, workspaceId, name: 'production', createdAt: NOON }, [])
      const time = NOON - 9 * DAY_MS
      const sent = [
        event({ time }),
        scored('accuracy', 1, { comment: 'content', time, payload: '{"name":"accuracy"}' }),
      ]
      await storage().appendEvents(batch(env, sent, { receivedAt: time }))
      const { id } = await runOf(storage(), env)
      await storage().giveScore(env, operatorScore(id, 'quality', 1, { comment: 'content' }), [])
      const settings = { before: KEEP_ALL, settings: { ...KEEP_ALL, payloadDays: 5 } }
      assert.ok(await storage().changeRetention(workspaceId, env, settings, NOON, []))
      await storage().startRetention(env, NOON)
      await storage().removeExpiredPayloads(env, NOON, { ids: [id], most: 10, reachedAt: NOON })
      const { rows } = await storage().listScores(env, id, { limit: 10, after: null })
      assert.deepEqual(
        rows.map(({ number, comment }) => [number, comment]),
        [
          [1, null],
          [1, null],
        ],
      )
    })
  })
}
