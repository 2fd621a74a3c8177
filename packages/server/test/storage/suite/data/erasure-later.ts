/** Rows that an erasure keeps, and events that arrive after it. No erased data comes back. */
import { eventEnvironment } from '../../../../src/storage/sql/engine/sql.ts'
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { advanceErasure } from '../../../../src/domain/data/erasure.ts'
import type { NewEvent } from '../../../../src/storage/record/events.ts'
import { request } from '../approvals/approval-sample.ts'
import { LATER, newErasure, erase, deleteAll, runIds, usage, call, toolCall, tools } from './erasure-sample.ts'
import { issueRecord, reviewed } from '../issues/issue-sample.ts'
import { changeShared, sharedStorage, type OpenStorage } from '../open.ts'
import { append, batch, event, HOUR, newEnvironment, newId, NOON } from '../sample.ts'

export function erasureLaterSuite(open: OpenStorage) {
  describe('an erasure, later', () => {
    const storage = sharedStorage(open)

    test('of an agent lets it work on, under the same run id too', async () => {
      const env = newId()
      const before = event({ runId: 'running', agentId: 'agent-1', clientId: 'client-1' })
      await append(storage(), env, before)
      const erasure = await erase(storage(), env, { kind: 'agent', subject: 'agent-1' })
      const next = event({ runId: 'running', agentId: 'agent-1', clientId: 'client-1', time: LATER + 1 })
      assert.deepEqual(await append(storage(), env, before, next), ['erased', 'stored'])
      await deleteAll(storage(), erasure)
      const run = await storage().findRun(env, 'running')
      assert.deepEqual([run?.eventCount, run?.agentName], [1, 'Support bot'])
      const { rows } = await storage().listEvents(env, run!.id, { limit: 10, pageBytes: 1_000, after: null })
      assert.deepEqual(
        rows.map(({ eventId, agentId, clientId }) => [eventId, agentId, clientId]),
        [[next.eventId, 'agent-1', 'client-1']],
      )
    })

    test('of a user refuses what their runs record later, and says how many had not ended', async () => {
      const env = newId()
      await append(
        storage(),
        env,
        event({ runId: 'going', userId: 'vera' }),
        event({ runId: 'over', userId: 'vera' }),
        event({ runId: 'over', userId: 'vera', eventType: 'SESSION_OUTCOME', outcome: 'COMPLETED' }),
      )
      const user = { kind: 'user', subject: 'vera', field: null } as const
      const { runs, runningRuns } = await storage().previewErasure(env, user, 10)
      assert.deepEqual([runs, runningRuns], [2, 1])
      const { id } = await erase(storage(), env, { kind: 'user', subject: 'vera' })
      const later = { runId: 'going', time: LATER + HOUR }
      assert.deepEqual(await append(storage(), env, event(later)), ['erased'])
      const erasure = await storage().findErasure(env, id)
      assert.deepEqual([erasure?.runs, erasure?.runningRuns], [2, 1])
      // Events of the same user's other runs are accepted.
      assert.deepEqual(await append(storage(), env, event({ runId: 'next', userId: 'vera' })), ['stored'])
    })

    test('of an agent leaves no gap where its run counts on', async () => {
      const env = newId()
      const numbered = (n: number, time: number) =>
        event({ runId: 'going', agentId: 'agent-2', number: `abcde${n}`, time })
      await append(storage(), env, numbered(1, NOON), numbered(2, NOON + 1))
      await erase(storage(), env, { kind: 'agent', subject: 'agent-2' })
      await append(storage(), env, numbered(3, LATER + 1))
      await append(storage(), env, numbered(4, LATER + 2))
      const run = await storage().findRun(env, 'going')
      assert.deepEqual([run?.eventCount, run?.recorders], [2, null])
    })

    test('of a client keeps out what was seen of it before, not what comes later', async () => {
      const env = newId()
      await append(storage(), env, event({ clientId: 'gone' }))
      const erasure = await erase(storage(), env, { kind: 'client', subject: 'gone' })
      const { effectiveAt } = (await storage().findErasure(env, erasure.id))!
      const seen = (clientId: string, seenAt: number) =>
        storage().writeConfigurationClients(
          env,
          [{ identifiedBy: 'client', clientId, keyId: 'k', revision: '', seenAt }],
          0,
        )
      const names = async () =>
        (await storage().listConfigurationClients(env, undefined, { limit: 10, after: null })).rows.map(
          ({ clientId }) => clientId,
        )
      await seen('gone', effectiveAt!)
      await seen('other', effectiveAt!)
      assert.deepEqual(await names(), ['other'])
      await seen('gone', effectiveAt! + 1)
      assert.deepEqual(await names(), ['gone', 'other'])
    })

    test('takes what was stored up to ten seconds after it by any clock, and refuses as much', async () => {
      for (const [answerMs, until] of [
        [5_000, LATER + 5_000],
        [15_000, LATER + 10_000],
      ] as const) {
        const env = newId()
        const ofSession = (runId: string, time: number) => event({ runId, sessionId: 's', time })
        const store = (receivedAt: number, one: NewEvent) => storage().appendEvents(batch(env, [one], { receivedAt }))
        // The client's clock is four minutes ahead.
        const ahead = ofSession('ahead', LATER + 240_000)
        await store(LATER - 1, ahead)
        const { id } = await storage().createErasure(newErasure(env, { kind: 'session', subject: 's' }), [])
        assert.deepEqual(await store(LATER, ofSession('known', LATER)), ['erased'])
        assert.deepEqual(await store(LATER + 10_000, ofSession('taken', LATER + 1)), ['stored'])
        assert.deepEqual(await store(LATER + 10_001, ofSession('late', LATER + 10_001)), ['stored'])
        const now = () => LATER + answerMs
        const erasure = await advanceErasure(storage(), { environmentId: env, id, now, isOver: () => false })
        assert.deepEqual([erasure?.effectiveAt, erasure?.runs], [LATER + answerMs, 2])
        assert.deepEqual(await runIds(storage(), env), ['late'])
        // Events that arrive after the erasure, with times before and after it.
        const after = [
          ofSession('new', until),
          ofSession('new', until + 1),
          ofSession('late', until),
          ofSession('late', until + 1),
          ahead,
          { ...ahead, eventId: newId() },
          ofSession('ahead', ahead.time + 1),
        ]
        assert.deepEqual(await append(storage(), env, ...after), [
          'erased',
          'stored',
          'erased',
          'stored',
          'erased',
          'erased',
          'stored',
        ])
        assert.deepEqual(await runIds(storage(), env), ['ahead', 'late', 'new'])
      }
    })

    test('of a run refuses every later event of it', async () => {
      const env = newId()
      await append(storage(), env, event({ runId: 'gone' }))
      await erase(storage(), env, { kind: 'run', subject: 'gone' })
      assert.deepEqual(await append(storage(), env, event({ runId: 'gone', time: LATER + HOUR })), ['erased'])
    })

    test('of a run whose payloads are gone takes no usage from others', async () => {
      const env = await newEnvironment(storage())
      await append(storage(), env, call({ runId: 'gone' }), toolCall({ runId: 'gone' }), event({ runId: 'gone' }))
      await append(storage(), env, call({ runId: 'kept' }))
      const environment = `environment_id = ${eventEnvironment({ dialect: storage().engine }, '?')}`
      const { number } = (await storage().listUnpackedRuns(env, 0, 10)).find(({ runId }) => runId === 'gone')!
      const removed = "payload = '', payload_bytes = 0, payload_sum = NULL"
      await changeShared(open, `UPDATE events SET ${removed} WHERE ${environment} AND run = ${number}`, env)
      await erase(storage(), env, { kind: 'run', subject: 'gone' })
      const counts = [...(await usage(storage(), env)), ...(await tools(storage(), env)).flat()]
      const numbers = counts.flatMap((row) => (typeof row === 'object' && row !== null ? Object.values(row) : [row]))
      assert.deepEqual(
        numbers.filter((one) => typeof one === 'number' && one < 0),
        [],
      )
    })

    test('of a run refuses every later approval and issue record of it', async () => {
      const env = newId()
      await erase(storage(), env, { kind: 'run', subject: 'gone' })
      const named = { runId: 'gone', createdAt: LATER + HOUR }
      assert.equal((await storage().createApproval(request(env, named))).outcome, 'erased')
      assert.equal(await storage().receiveIssueRecord(issueRecord(env, { ...named, detectedAt: LATER + HOUR })), null)
    })

    test('holds for an import of an older export', async () => {
      const env = await newEnvironment(storage())
      await append(
        storage(),
        env,
        // The client's clock is ahead, so the event's time is after the erasure.
        event({ agentId: 'gone', agentName: 'Grace', time: LATER + HOUR / 60 }),
        event({ runId: 'b', agentId: 'kept' }),
      )
      await storage().createApproval(request(env, { agentId: 'gone' }))
      await reviewed(storage(), issueRecord(env, { agentId: 'gone' }))
      const tables = ['agent', 'approval', 'issueRecord', 'issue'] as const
      const exported = []
      for (const table of tables) {
        const { rows } = await storage().readExported(env, table, null, 10)
        exported.push({ table, rows: rows.filter((row) => row['externalId'] !== 'kept') })
      }
      assert.deepEqual(await storage().importRows(env, 'agent', exported[0]!.rows, NOON), {
        outcome: 'imported',
        written: 0,
      })
      await erase(storage(), env, { kind: 'agent', subject: 'gone' })
      for (const { table, rows } of exported) {
        assert.equal(rows.length, 1, table)
        assert.deepEqual(await storage().importRows(env, table, rows, NOON), { outcome: 'erased', index: 0 }, table)
        const left = await storage().readExported(env, table, null, 10)
        assert.deepEqual(
          left.rows.filter((row) => row['externalId'] !== 'kept'),
          [],
          table,
        )
      }
    })

    test('takes approvals and issue records that are sent again while it works', async () => {
      const env = newId()
      const asked = Array.from({ length: 20 }, () => request(env, { sessionId: 's' }))
      const records = asked.map(() => issueRecord(env, { runId: null, sessionId: 's' }))
      for (const one of asked) await storage().createApproval(one)
      for (const one of records) await storage().receiveIssueRecord(one)
      const retries = [...asked, ...asked].map((one) => storage().createApproval({ ...one, id: newId() }))
      const late = [...records, ...records].map((one) => storage().receiveIssueRecord({ ...one, id: newId() }))
      await erase(storage(), env, { kind: 'session', subject: 's' })
      await Promise.all([...retries, ...late])
      const { rows } = await storage().listApprovals(env, {}, { limit: 100, after: null })
      const left = await storage().listIssueRecords(env, {}, { limit: 100, after: null })
      assert.deepEqual([rows.length, left.rows.length], [0, 0])
    })

    test('races with appends: an event is either erased with the session or refused', async () => {
      const env = newId()
      const verdicts: string[] = []
      const appends = Array.from({ length: 12 }, async (_, index) => {
        for (let round = 0; round < 8; round++) {
          const runId = `run-${(index + round) % 7}`
          const sent = Array.from({ length: 5 }, () => call({ runId, sessionId: 's' }, 1))
          verdicts.push(...(await append(storage(), env, ...sent)))
        }
      })
      await appends[0]
      const erasure = await erase(storage(), env, { kind: 'session', subject: 's' })
      await Promise.all(appends)
      assert.ok(verdicts.every((verdict) => verdict === 'stored' || verdict === 'erased'))
      assert.deepEqual(await runIds(storage(), env), [])
      assert.deepEqual(await usage(storage(), env), [])
      assert.equal(erasure.events, verdicts.filter((verdict) => verdict === 'stored').length)
      await deleteAll(storage(), erasure, 100)
      const kept = call({ runId: 'run-1', sessionId: 'other' })
      assert.deepEqual(await append(storage(), env, { ...kept, time: LATER + 1 }), ['stored'])
    })
  })
}
