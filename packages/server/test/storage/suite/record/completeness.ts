/** Counts of arrived and missing events of a run, for events that arrive twice, late, out of order, or not at all. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { toCompleteness } from '../../../../src/domain/record/completeness.ts'
import type { NewEvent, RejectionRow } from '../../../../src/storage/record/events.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { append, batch, event, newEnvironment, newId, NOON, outcome, runOf } from '../sample.ts'

const RECORDER = 'abcde'
const drops = (...rows: [reason: string, count: number, lastAt: number][]) =>
  JSON.stringify(rows.map(([reason, count, lastAt]) => ({ reason, count, lastAt })))

export function completenessSuite(open: OpenStorage) {
  describe('completeness', () => {
    const storage = sharedStorage(open)
    const numbered = (number: number, given: Partial<NewEvent> = {}, recorder = RECORDER) =>
      event({ eventId: `${recorder}-${number}`, number: `${recorder}${number.toString(36)}`, ...given })
    const last = (number: number, given: Partial<NewEvent> = {}, recorder = RECORDER) =>
      outcome('COMPLETED', { eventId: `${recorder}-${number}`, number: `${recorder}${number.toString(36)}.`, ...given })
    const many = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => numbered(from + n))

    async function found(env: string) {
      const run = await runOf(storage(), env)
      const { recorders, drops: _, ...counts } = toCompleteness(run)
      const { rows } = await storage().listRuns(env, { completeness: 'GAPS' }, { limit: 10, after: null })
      assert.equal(rows.length, counts.state === 'GAPS' ? 1 : 0, 'the filter agrees')
      const gaps = await storage().listGaps(env, {}, { limit: 10, after: null })
      const { id, runId, startedAt, agentId, agentName, agentDisplayName } = run
      const kept = { id, runId, startedAt, agentId, agentName, agentDisplayName, recorders: run.recorders }
      assert.deepEqual(gaps, { rows: rows.length === 0 ? [] : [kept], more: false })
      return { ...counts, clients: recorders.map(({ clientId }) => clientId) }
    }
    const state = (given: object) => ({
      state: 'COMPLETE',
      recorded: 0,
      arrived: 0,
      rejected: 0,
      dropped: 0,
      missing: 0,
      unnumbered: 0,
      clients: ['client'],
      ...given,
    })

    test('is not known for a client that does not number', async () => {
      const env = newId()
      await append(storage(), env, event(), outcome('COMPLETED'))
      assert.deepEqual(await found(env), state({ state: 'UNKNOWN', unnumbered: 2, clients: [] }))
    })

    test('is known when the last event is there, and not before', async () => {
      const env = newId()
      await append(storage(), env, ...many(1, 40))
      assert.deepEqual(await found(env), state({ state: 'OPEN', recorded: 40, arrived: 40 }))
      await append(storage(), env, last(41))
      assert.deepEqual(await found(env), state({ recorded: 41, arrived: 41 }))
      await append(storage(), env, numbered(42))
      assert.deepEqual(await found(env), state({ state: 'OPEN', recorded: 42, arrived: 42 }), 'it was not the last')
    })

    test('counts a retry once, in one batch and later', async () => {
      const env = newId()
      const events = many(1, 3)
      await append(storage(), env, ...events, events[0]!)
      await append(storage(), env, ...events, last(4))
      await append(storage(), env, last(4))
      assert.deepEqual(await found(env), state({ recorded: 4, arrived: 4 }))
    })

    test('has gaps until what is missing arrives, in any order', async () => {
      const env = newId()
      await append(storage(), env, last(5), numbered(2))
      assert.deepEqual(await found(env), state({ state: 'GAPS', recorded: 5, arrived: 2, missing: 3 }))
      await append(storage(), env, numbered(4), numbered(1))
      assert.deepEqual(await found(env), state({ state: 'GAPS', recorded: 5, arrived: 4, missing: 1 }))
      await append(storage(), env, numbered(3))
      assert.deepEqual(await found(env), state({ recorded: 5, arrived: 5 }))
    })

    test('says what the client dropped and why, however often and late it is told', async () => {
      const env = newId()
      const told = numbered(6, { drops: drops(['queue_full', 4, NOON + 4]) })
      await append(storage(), env, numbered(1), told)
      assert.deepEqual(await found(env), state({ state: 'GAPS', recorded: 6, arrived: 2, dropped: 4 }))
      await append(storage(), env, told, numbered(7, { drops: drops(['queue_full', 3, NOON + 3]) }))
      assert.deepEqual(
        await found(env),
        state({ state: 'GAPS', recorded: 7, arrived: 3, dropped: 4 }),
        'an older report',
      )
      await append(storage(), env, last(9, { drops: drops(['queue_full', 4, NOON + 4], ['refused', 1, NOON + 9]) }))
      assert.deepEqual(await found(env), state({ state: 'GAPS', recorded: 9, arrived: 4, dropped: 5 }))
      const said = toCompleteness(await runOf(storage(), env)).drops
      assert.deepEqual(
        said.map(({ reason, count, lastAt }) => [reason, count, Date.parse(lastAt)]),
        [
          ['queue_full', 4, NOON + 4],
          ['refused', 1, NOON + 9],
        ],
      )
    })

    test('hears a new report from a retry of a stored event', async () => {
      const env = newId()
      await append(storage(), env, numbered(1), numbered(3))
      await append(storage(), env, numbered(3, { drops: drops(['queue_full', 1, NOON]) }), last(4))
      assert.deepEqual(await found(env), state({ state: 'GAPS', recorded: 4, arrived: 3, dropped: 1 }))
    })

    test('hears a new report from what arrives again in the batch that opens the run', async () => {
      const [env, other] = [newId(), newId()]
      const report = { drops: drops(['queue_full', 1, NOON]) }
      await append(storage(), env, numbered(1), numbered(1, report))
      assert.deepEqual(await found(env), state({ state: 'GAPS', recorded: 2, arrived: 1, dropped: 1 }))
      const numbering = { number: `${RECORDER}2`, clientId: 'client', drops: null }
      const refused = { runId: 'run', eventId: 'e2', code: 'too_long', rejectedAt: NOON, numbered: numbering } as const
      await storage().appendEvents(batch(other, [], { rejections: [refused] }))
      const again = { ...refused, numbered: { ...numbering, ...report } }
      await storage().appendEvents(batch(other, [numbered(1)], { rejections: [again] }))
      assert.deepEqual(await found(other), state({ state: 'GAPS', recorded: 2, arrived: 1, dropped: 1 }))
    })

    test('is complete if all arrived, though a client counted some as dropped after a lost answer', async () => {
      const env = newId()
      await append(storage(), env, ...many(1, 3), last(4, { drops: drops(['queue_full', 2, NOON]) }))
      assert.deepEqual(await found(env), state({ recorded: 4, arrived: 4 }))
      assert.deepEqual(toCompleteness(await runOf(storage(), env)).drops, [])
    })

    test('counts what was rejected, once for all retries, in the batch that opens the run and later', async () => {
      const env = newId()
      const row = (number: number): RejectionRow => {
        const numbering = { number: `${RECORDER}${number}`, clientId: 'client', drops: drops(['failed', 1, NOON]) }
        return { runId: 'run', eventId: `e${number}`, code: 'too_long', rejectedAt: NOON, numbered: numbering }
      }
      const first = batch(env, [numbered(1)], { rejections: [row(2), row(2)] })
      await storage().appendEvents(first)
      assert.deepEqual(await found(env), state({ state: 'GAPS', recorded: 3, arrived: 1, rejected: 1, dropped: 1 }))
      await storage().appendEvents(first)
      await storage().appendEvents(batch(env, [], { rejections: [row(2), row(3)] }))
      await append(storage(), env, last(5))
      assert.deepEqual(await found(env), state({ state: 'GAPS', recorded: 5, arrived: 2, rejected: 2, dropped: 1 }))
    })

    test('counts an event that only the store refuses', async () => {
      const env = newId()
      await append(storage(), env, numbered(1), numbered(2, { onlyIfStored: true }), last(3))
      assert.deepEqual(await found(env), state({ state: 'GAPS', recorded: 3, arrived: 2, rejected: 1 }))
    })

    test('keeps the processes of a run apart, and waits for each of them', async () => {
      const env = newId()
      const other = { clientId: 'worker' }
      await append(storage(), env, ...many(1, 3), numbered(1, other, 'other'))
      await append(storage(), env, last(4))
      const clients = ['client', 'worker']
      assert.deepEqual(await found(env), state({ state: 'OPEN', recorded: 5, arrived: 5, clients }))
      await append(storage(), env, numbered(3, { ...other, number: 'other3.' }, 'other'))
      assert.deepEqual(await found(env), state({ state: 'GAPS', recorded: 7, arrived: 6, missing: 1, clients }))
      await append(storage(), env, numbered(2, other, 'other'))
      assert.deepEqual(await found(env), state({ recorded: 7, arrived: 7, clients }))
    })

    test('is not known with events that have no number, or numbers that contradict each other', async () => {
      const env = newId()
      await append(storage(), env, numbered(1), event(), last(2))
      assert.deepEqual(await found(env), state({ state: 'UNKNOWN', recorded: 2, arrived: 2, unnumbered: 1 }))
      const twice = newId()
      await append(storage(), twice, numbered(1), numbered(1, { eventId: 'another' }), last(2))
      assert.deepEqual(await found(twice), state({ state: 'UNKNOWN', recorded: 3, arrived: 3 }))
    })

    test('keeps at most 50 processes of a run', async () => {
      const env = newId()
      const recorders = Array.from({ length: 60 }, (_, n) => `r${String(n).padStart(4, '0')}`)
      for (const recorder of recorders) await append(storage(), env, last(1, {}, recorder))
      const { state: is, arrived, unnumbered } = await found(env)
      assert.deepEqual({ is, arrived, unnumbered }, { is: 'UNKNOWN', arrived: 50, unnumbered: 10 })
    })

    test('is told once, a minute after the first gap, by the node that holds the work', async () => {
      const env = await newEnvironment(storage())
      await append(storage(), env, numbered(2))
      await append(storage(), env, numbered(4))
      const claim = { kind: 'tell_gaps', owner: 'node', leaseUntil: NOON + 100_000, limit: 1_000 } as const
      const claimed = async (now: number) =>
        (await storage().claimWork({ ...claim, now })).filter(({ environmentId }) => environmentId === env)
      assert.deepEqual(await claimed(NOON + 59_999), [])
      const items = await claimed(NOON + 60_000)
      const { id } = await runOf(storage(), env)
      assert.deepEqual(
        items.map(({ environmentId, subjectId }) => ({ environmentId, subjectId })),
        [{ environmentId: env, subjectId: id }],
      )
      const hold = { kind: 'tell_gaps', owner: 'node', items } as const
      const news = { type: 'run.incomplete', at: NOON, data: { runId: 'run' } } as const
      assert.equal(await storage().tellOfRun({ ...hold, owner: 'other' }, env, id, news), false)
      assert.equal(await storage().tellOfRun(hold, env, id, news), true)
      assert.equal(await storage().tellOfRun(hold, env, id, news), false)
      await append(storage(), env, numbered(6))
      assert.deepEqual(await claimed(NOON + 600_000), [])
    })
  })
}
