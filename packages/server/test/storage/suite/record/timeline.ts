import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EVENT_ORDERS } from '@tacho/contract/runs/operator-run.ts'
import type { EventFilter, EventRowRead, EventRowsPage, NewEvent } from '../../../../src/storage/record/events.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { append, event, newId, NOON, outcome, runOf, sampleFailure } from '../sample.ts'

const ids = (rows: { eventId: string }[]) => rows.map(({ eventId }) => eventId)
const ample = { limit: 1000, pageBytes: 1e9, after: null }

export function timelineSuite(open: OpenStorage) {
  describe('a timeline', () => {
    const storage = sharedStorage(open)

    /** Stores events with the given times, named e0, e1 … in arrival order. */
    async function timeline(times: number[], given: Partial<NewEvent> = {}) {
      const env = newId()
      for (const [n, time] of times.entries()) {
        await append(storage(), env, event({ eventId: `e${n}`, time: NOON + time, ...given }))
      }
      return { env, run: (await runOf(storage(), env)).id }
    }

    test('is ordered by time, then by arrival', async () => {
      const { env, run } = await timeline([5, 3, 5, 1, 3])
      const { rows, more } = await storage().listEvents(env, run, ample)
      assert.deepEqual(ids(rows), ['e3', 'e1', 'e4', 'e0', 'e2'])
      assert.equal(more, false)
    })

    test('continues after the last row of a page, among equal times too', async () => {
      const { env, run } = await timeline([1, 1, 1, 2, 2, 3, 1])
      const whole = ids((await storage().listEvents(env, run, ample)).rows)
      assert.deepEqual(whole, ['e0', 'e1', 'e2', 'e6', 'e3', 'e4', 'e5'])
      for (const limit of [1, 2, 3, 7, 8]) {
        const walked: string[] = []
        for (let after: { time: number; seq: number } | null = null; ;) {
          const { rows, more } = await storage().listEvents(env, run, { ...ample, limit, after })
          walked.push(...ids(rows))
          const last = rows.at(-1)
          if (!more || last === undefined) break
          assert.equal(rows.length, limit)
          after = { time: last.time, seq: last.seq }
        }
        assert.deepEqual(walked, whole)
      }
    })

    test('says whether rows follow, at the limit and one before it', async () => {
      const { env, run } = await timeline([1, 2, 3])
      const more = async (limit: number) => (await storage().listEvents(env, run, { ...ample, limit })).more
      assert.deepEqual([await more(2), await more(3), await more(4)], [true, false, false])
      const rowsMore = async (limit: number) =>
        (await storage().listEventRows(env, run, { limit, order: 'time', after: null })).more
      assert.deepEqual([await rowsMore(2), await rowsMore(3), await rowsMore(4)], [true, false, false])
    })

    test('has its problems in pages of their own, by time, however many other events lie between', async () => {
      const env = newId()
      const call = (problem: 'error' | null, given: Partial<NewEvent>) =>
        event({ eventType: 'TOOL_CALL', toolUse: { tool: 'pay', problem }, payload: '{"error":"503"}', ...given })
      const decision = (problem: 'blocked' | 'approval', given: Partial<NewEvent>) =>
        event({ eventType: 'POLICY_DECISION', toolUse: { tool: 'pay', problem }, ...given })
      await append(
        storage(),
        env,
        outcome('FAILED', { eventId: 'end', time: NOON + 900 }),
        event({ eventType: 'ERROR', eventId: 'error', failure: sampleFailure(), time: NOON + 500 }),
        ...Array.from({ length: 40 }, (_, n) => event({ time: NOON + n * 10 })),
        call('error', { eventId: 'failed', time: NOON + 200 }),
        call(null, { eventId: 'worked', time: NOON + 210 }),
        decision('approval', { eventId: 'asked', time: NOON + 200 }),
        decision('blocked', { eventId: 'held', time: NOON + 100 }),
      )
      await append(storage(), env, event({ runId: 'other', eventType: 'ERROR', failure: sampleFailure() }))
      const run = (await runOf(storage(), env)).id
      const whole = await storage().listProblems(env, run, ample)
      assert.deepEqual(
        whole.rows.map(({ eventId, problem }) => [eventId, problem]),
        [
          ['held', 'blocked'],
          ['failed', 'error'],
          ['asked', 'approval'],
          ['error', 'error'],
          ['end', 'error'],
        ],
      )
      assert.equal(whole.rows[1]?.payload, '{"error":"503"}')
      const first = await storage().listProblems(env, run, { ...ample, limit: 2 })
      assert.deepEqual([ids(first.rows), first.more], [['held', 'failed'], true])
      const { time = 0, seq = 0 } = first.rows[1] ?? {}
      const rest = await storage().listProblems(env, run, { ...ample, after: { time, seq } })
      assert.deepEqual([ids(rest.rows), rest.more], [['asked', 'error', 'end'], false])
      // A page has at least one row, and more while their payloads fit.
      assert.deepEqual(ids((await storage().listProblems(env, run, { ...ample, pageBytes: 1 })).rows), ['held'])
      assert.deepEqual((await storage().listProblems(newId(), run, ample)).rows, [])
    })

    test('a cancelled run says why it ended, which is no problem', async () => {
      const env = newId()
      const why = sampleFailure({ errorClass: 'SIGTERM', message: null, place: { kind: 'run', name: null } })
      await append(storage(), env, outcome('CANCELLED', { failure: why }))
      assert.deepEqual((await storage().listProblems(env, (await runOf(storage(), env)).id, ample)).rows, [])
    })

    test('has pages that end before their payloads exceed pageBytes, with at least one row', async () => {
      // Letters of two bytes, because the limit counts bytes and not characters.
      const payload = JSON.stringify({ text: 'ž'.repeat(45) })
      const bytes = Buffer.byteLength(payload) + Buffer.byteLength(event().agentName)
      const { env, run } = await timeline([1, 2, 3, 4], { payload })
      const rows = async (pageBytes: number) =>
        (await storage().listEvents(env, run, { ...ample, pageBytes })).rows.length
      assert.deepEqual([await rows(2 * bytes), await rows(2 * bytes + 1), await rows(3 * bytes)], [2, 2, 3])
      assert.deepEqual([await rows(2 * bytes - 1), await rows(1), await rows(4 * bytes)], [1, 1, 4])
      const { more } = await storage().listEvents(env, run, { ...ample, pageBytes: 1 })
      assert.equal(more, true)
    })

    test('counts all long texts of an event towards the bytes of a page', async () => {
      const env = newId()
      const text = 'x'.repeat(100_000)
      const long = [
        { sessionId: text },
        { agentName: text },
        { agentId: text },
        { spanId: text },
        { schemaVersion: text },
      ]
      await append(storage(), env, ...long.map((given) => event({ runId: 'long', ...given })))
      const { id } = await runOf(storage(), env, 'long')
      const { rows, more } = await storage().listEvents(env, id, { limit: 100, pageBytes: 250_000, after: null })
      assert.deepEqual([rows.length, more], [2, true])
    })

    test('without payloads gives their size in bytes', async () => {
      const payload = '{"text":"ž😀"}'
      const { env, run } = await timeline([2, 1], { payload })
      const { rows } = await storage().listEventRows(env, run, { limit: 5, order: 'time', after: null })
      assert.deepEqual(ids(rows), ['e1', 'e0'])
      const full = (await storage().listEvents(env, run, ample)).rows
      assert.deepEqual(
        rows,
        full.map(({ payload: _, ...row }) => row),
      )
      assert.equal(rows[0]?.payloadBytes, Buffer.byteLength(payload))
    })

    test('can be followed by arrival: each page after the last seq holds the newer events', async () => {
      const { env, run } = await timeline([5, 1, 3])
      const page = (given: Partial<EventRowsPage>) =>
        storage().listEventRows(env, run, { limit: 2, order: 'arrival', after: null, ...given })
      const place = (row: EventRowRead | undefined) => ({ time: row?.time ?? 0, seq: row?.seq ?? 0 })
      const first = await page({})
      assert.deepEqual([ids(first.rows), first.more], [['e0', 'e1'], true])
      const second = await page({ after: place(first.rows[1]) })
      assert.deepEqual([ids(second.rows), second.more], [['e2'], false])
      const tail = { after: place(second.rows[0]) }
      assert.deepEqual(await page(tail), { rows: [], more: false })
      await append(storage(), env, event({ runId: 'other', time: NOON }))
      await append(storage(), env, event({ eventId: 'e3', time: NOON }))
      assert.deepEqual(ids((await page(tail)).rows), ['e3'])
    })

    test('can be filtered by type and by a text in the label, in each order', async () => {
      const env = newId()
      const given: Partial<NewEvent>[] = [
        { label: 'Refund 100%', eventType: 'TOOL_CALL' },
        { label: 'says REFUND', eventType: 'AGENT_STEP' },
        { label: 'Žádá', eventType: 'TOOL_CALL' },
        { label: 'refuse', eventType: 'TOOL_CALL' },
        { label: 'a_b', eventType: 'TOOL_CALL_2' },
      ]
      for (const [n, one] of given.entries()) {
        await append(storage(), env, event({ ...one, eventId: `e${n}`, time: NOON - n }))
      }
      await append(storage(), env, event({ runId: 'other', label: 'refund', eventType: 'TOOL_CALL' }))
      const run = (await runOf(storage(), env)).id
      const filters: [Omit<EventFilter, 'rowsLookedAt'>, string[]][] = [
        [{ eventType: 'TOOL_CALL' }, ['e0', 'e2', 'e3']],
        [{ eventType: 'tool_call' }, []],
        [{ label: 'reFUnd' }, ['e0', 'e1']],
        [{ label: '100%' }, ['e0']],
        [{ label: '%' }, ['e0']],
        [{ label: '_' }, ['e4']],
        [{ label: 'Žá' }, ['e2']],
        [{ label: 'žá' }, []],
        [{ label: 'REFU', eventType: 'TOOL_CALL' }, ['e0', 'e3']],
      ]
      for (const [filter, expected] of filters) {
        for (const order of EVENT_ORDERS) {
          const page: EventRowsPage = { limit: 10, order, after: null, filter: { ...filter, rowsLookedAt: 100 } }
          const { rows, more } = await storage().listEventRows(env, run, page)
          assert.deepEqual([ids(rows), more], [order === 'time' ? expected.toReversed() : expected, false])
          assert.deepEqual(await storage().listEventRows(newId(), run, page), { rows: [], more: false })
        }
      }
    })

    test('scans a bounded number of rows for a filtered page, and says where it stopped', async () => {
      const env = newId()
      for (let n = 0; n < 12; n++) {
        const eventType = n === 5 || n > 8 ? 'FOUND' : 'OTHER'
        await append(storage(), env, event({ eventId: `e${n}`, eventType, time: NOON + Math.floor(n / 2) }))
      }
      const run = (await runOf(storage(), env)).id
      for (const order of EVENT_ORDERS) {
        const all = (await storage().listEventRows(env, run, { limit: 20, order, after: null })).rows
        for (const limit of [1, 2, 5]) {
          for (const rowsLookedAt of [1, 2, 3, 5, 12, 13]) {
            const found: string[] = []
            let requests = 0
            for (let after: EventRowsPage['after'] = null; ; requests++) {
              const page: EventRowsPage = { limit, order, after, filter: { eventType: 'FOUND', rowsLookedAt } }
              const { rows, more, lookedTo } = await storage().listEventRows(env, run, page)
              const from: number = all.findIndex(({ seq }) => seq === after?.seq) + 1
              const window = all.slice(from, from + rowsLookedAt).map(({ eventId }) => eventId)
              assert.ok(ids(rows).every((id) => window.includes(id)))
              found.push(...ids(rows))
              if (lookedTo) assert.equal(lookedTo.seq, all[from + rowsLookedAt - 1]?.seq)
              if (!more) break
              const place: { time: number; seq: number } | undefined = lookedTo ?? rows.at(-1)
              assert.ok(place)
              after = { time: place.time, seq: place.seq }
            }
            const expected = ['e5', 'e9', 'e10', 'e11']
            assert.deepEqual(found, order === 'latest' ? expected.toReversed() : expected)
            assert.ok(requests <= 12 / rowsLookedAt + 4 / limit)
          }
        }
      }
    })

    test('holds the events of its run and environment only', async () => {
      const { env, run } = await timeline([1, 2])
      await append(storage(), env, event({ runId: 'other' }))
      assert.equal((await storage().listEvents(env, run, ample)).rows.length, 2)
      for (const order of EVENT_ORDERS) {
        const rows = { limit: 10, order, after: null }
        assert.deepEqual(await storage().listEventRows(newId(), run, rows), { rows: [], more: false })
      }
      assert.deepEqual(await storage().listEvents(newId(), run, ample), { rows: [], more: false })
      assert.deepEqual(await storage().listEvents(env, newId(), ample), { rows: [], more: false })
    })

    test('gives each of its events a position and marks the one that closed the run', async () => {
      const { env, run } = await timeline([5, 3, 5])
      await append(storage(), env, outcome('FAILED', { eventId: 'end', time: NOON + 4 }))
      await append(storage(), env, outcome('COMPLETED', { eventId: 'again', time: NOON + 6 }))
      const found = async (name: string, eventId: string) => {
        const place = await storage().findEvent(env, name, eventId)
        return place && [place.position, place.closedRun]
      }
      assert.deepEqual(await found('run', 'e1'), [1, false])
      assert.deepEqual(await found('run', 'end'), [2, true])
      assert.deepEqual(await found(run, 'e2'), [4, false])
      assert.deepEqual(await found('run', 'again'), [5, false])
      assert.equal(await found('run', 'unknown'), null)
      assert.equal(await found('unknown', 'e1'), null)
      assert.equal(await storage().findEvent(newId(), 'run', 'e1'), null)
    })

    test('finds an event whole, with its run', async () => {
      const { env, run } = await timeline([1, 2], { payload: '{"a":1}' })
      const found = await storage().findEvent(env, 'run', 'e1')
      assert.deepEqual(found?.run, await runOf(storage(), env))
      assert.deepEqual(found.event, (await storage().listEvents(env, run, ample)).rows[1])
    })
  })
}
