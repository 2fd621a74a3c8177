import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { NewEvent } from '../../../../src/storage/record/events.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { append, batch, event, llmCall, newId, NOON, runOf, timelineOf } from '../sample.ts'

export function eventsSuite(open: OpenStorage) {
  describe('events', () => {
    const storage = sharedStorage(open)

    test('an event is stored once; its retry is a duplicate', async () => {
      const env = newId()
      const sent = event()
      assert.deepEqual(await append(storage(), env, sent), ['stored'])
      assert.deepEqual(await append(storage(), env, sent), ['duplicate'])
      const run = await runOf(storage(), env)
      assert.equal(run.eventCount, 1)
      assert.equal(run.differingRetries, 0)
      assert.equal((await timelineOf(storage(), env)).length, 1)
    })

    test('verdicts follow the order of the batch; a repeat within it is a duplicate', async () => {
      const env = newId()
      const [a, b, c] = [event(), event(), event()]
      assert.deepEqual(await append(storage(), env, a, b, a), ['stored', 'stored', 'duplicate'])
      assert.deepEqual(await append(storage(), env, b, c, a), ['duplicate', 'stored', 'duplicate'])
    })

    test('an event id is unique within its run and its environment only', async () => {
      const [one, two] = [newId(), newId()]
      const sent = event()
      assert.deepEqual(await append(storage(), one, sent, { ...sent, runId: 'another' }), ['stored', 'stored'])
      assert.deepEqual(await append(storage(), two, sent), ['stored'])
      assert.equal((await timelineOf(storage(), one)).length, 1)
      assert.equal((await timelineOf(storage(), two)).length, 1)
    })

    const changes: Partial<NewEvent>[] = [
      { clientId: 'another' },
      { sessionId: 'another' },
      { agentId: 'another' },
      { agentName: 'another' },
      { eventType: 'ERROR' },
      { label: 'another' },
      { time: NOON + 1 },
      { payload: '{ }' },
      { spanId: 'another' },
      { parentSpanId: 'another' },
      { schemaVersion: 'another' },
    ]
    for (const change of changes) {
      test(`the first write wins over a retry with another ${Object.keys(change).join()}, which is counted`, async () => {
        const env = newId()
        const sent = event()
        await append(storage(), env, sent)
        const before = await timelineOf(storage(), env)
        assert.deepEqual(await append(storage(), env, { ...sent, ...change }, sent), ['duplicate', 'duplicate'])
        assert.deepEqual(await timelineOf(storage(), env), before)
        const run = await runOf(storage(), env)
        assert.deepEqual([run.eventCount, run.differingRetries], [1, 1])
        assert.deepEqual([run.startedAt, run.lastEventAt, run.sessionId], [NOON, NOON, null])
      })
    }

    test('an event that is too old counts as stored if another copy in its batch is stored, in either order', async () => {
      const [env, fresh] = [newId(), event()]
      const old = { ...fresh, time: fresh.time - 1, onlyIfStored: true }
      assert.deepEqual(await append(storage(), env, old, fresh, old), ['duplicate', 'stored', 'duplicate'])
      assert.equal((await runOf(storage(), env, fresh.runId)).eventCount, 1)
    })

    test('an event that is only looked up is never stored, and opens no run', async () => {
      const env = newId()
      const [old, known] = [event({ onlyIfStored: true }), event()]
      assert.deepEqual(await append(storage(), env, old), ['absent'])
      assert.equal(await storage().findRun(env, 'run'), null)
      assert.deepEqual(await append(storage(), env, known, old, { ...known, onlyIfStored: true }), [
        'stored',
        'absent',
        'duplicate',
      ])
      assert.equal((await runOf(storage(), env)).eventCount, 1)
    })

    test('an event that the store cannot hold fails alone and is remembered', async () => {
      const env = newId()
      // No engine accepts half a millisecond.
      const [good, bad, better] = [event(), event({ time: NOON + 0.5, runId: 'bad' }), event({ runId: 'better' })]
      const other = event({ runId: 'other' })
      const [verdicts, neighbours] = await Promise.all([
        append(storage(), env, good, bad, better, good),
        append(storage(), env, other),
      ])
      assert.deepEqual(verdicts, ['stored', 'unstorable', 'stored', 'duplicate'])
      assert.deepEqual(neighbours, ['stored'])
      assert.equal(await storage().findRun(env, 'bad'), null)
      assert.equal((await runOf(storage(), env, 'better')).eventCount, 1)
      const rejection = await storage().findRejection(env, 'bad', bad.eventId)
      const expected = { runId: 'bad', eventId: bad.eventId, code: 'unstorable', message: null, rejectedAt: NOON }
      assert.deepEqual(rejection, expected)
      assert.deepEqual(await append(storage(), env, event(), good), ['stored', 'duplicate'])
    })

    test('every field is read back as it was sent', async () => {
      const env = newId()
      const sent = event({
        clientId: 'client ✓',
        sessionId: 'session',
        agentId: 'agent',
        agentName: '',
        eventType: '',
        label: '  spaces are kept  ',
        spanId: 'span',
        parentSpanId: 'parent',
        schemaVersion: '1',
        latencyMs: 0.0525,
        payload: '{"2":1,"1":9007199254740993,"1":1.0, "__proto__":{"\\u0000":"\\ud83d😀"}}',
      })
      await storage().appendEvents(batch(env, [sent], { receivedAt: NOON + 7 }))
      const [row] = await timelineOf(storage(), env)
      assert.ok(row)
      const { runId: _run, outcome: _outcome, usage: _usage, failure: _failure, traits: _traits, ...rest } = sent
      const { number: _number, drops: _drops, ...kept } = rest
      const {
        onlyIfStored: _old,
        latencyMs: _latency,
        promptUse: _prompt,
        toolUse: _tool,
        score: _score,
        approval: _approval,
        said: _said,
        userId: _user,
        callKey: _call,
        ...content
      } = kept
      const payloadBytes = Buffer.byteLength(sent.payload)
      const used = { tokens: null, costNanos: null }
      assert.deepEqual(row, {
        ...content,
        ...used,
        seq: row.seq,
        receivedAt: NOON + 7,
        latencyMicros: 53,
        payloadBytes,
      })
    })

    test('has the tokens and the cost of a model call, or nothing', async () => {
      const env = newId()
      const most = { totalTokens: 1_000_000_000, costNanos: 1_000_000_000_000_000 }
      const calls = [llmCall({}), llmCall({ totalTokens: 7 }), llmCall({ costNanos: 5 }), llmCall(most), event()]
      await append(storage(), env, ...calls)
      const { rows } = await storage().listEventRows(env, (await runOf(storage(), env)).id, {
        limit: 9,
        order: 'arrival',
        after: null,
      })
      assert.deepEqual(
        rows.map(({ tokens, costNanos }) => [tokens, costNanos]),
        [
          [null, null],
          [7, null],
          [null, 5],
          [most.totalTokens, most.costNanos],
          [null, null],
        ],
      )
    })

    test('texts are compared to the last code point', async () => {
      const env = newId()
      const names = ['run', 'Run', 'run ', ' run', 'rün', 'ru\u0308n', 'r😀n', 'run%', '']
      const sent = names.map((runId) => event({ runId, eventId: 'same' }))
      assert.deepEqual(new Set(await append(storage(), env, ...sent)), new Set(['stored']))
      for (const runId of names) assert.equal((await runOf(storage(), env, runId)).eventCount, 1)
      const ids = names.map((eventId) => event({ runId: 'ids', eventId }))
      assert.deepEqual(new Set(await append(storage(), env, ...ids)), new Set(['stored']))
    })

    test('the longest texts are stored and found', async () => {
      const env = newId()
      const wide = (count: number) => '😀'.repeat(count)
      const sent = event({
        eventId: wide(160),
        clientId: wide(120),
        runId: wide(255),
        sessionId: wide(50_000),
        agentId: wide(50_000),
        agentName: wide(50_000),
        eventType: wide(50),
        label: wide(255),
        spanId: wide(50_000),
        payload: JSON.stringify({ text: 'x'.repeat(262_133) }),
      })
      assert.equal(Buffer.byteLength(sent.payload), 262_144)
      assert.deepEqual(await append(storage(), env, sent), ['stored'])
      assert.deepEqual(await append(storage(), env, sent), ['duplicate'])
      const found = await storage().findEvent(env, sent.runId, sent.eventId)
      assert.equal(found?.event.payload, sent.payload)
      const filter = { session: sent.sessionId ?? '', agentId: found.run.agentId }
      assert.deepEqual((await storage().listRuns(env, filter, { limit: 2, after: null })).rows, [found.run])
    })

    test('an empty batch is accepted', async () => {
      assert.deepEqual(await append(storage(), newId()), [])
    })

    test('batches sent at once are stored, each with its own verdicts', async () => {
      const env = newId()
      const batches = Array.from({ length: 40 }, (_, index) =>
        Array.from({ length: 5 }, (__, n) => event({ runId: `run ${(index + n) % 7}` })),
      )
      const verdicts = await Promise.all(batches.map((events) => append(storage(), env, ...events)))
      assert.deepEqual(new Set(verdicts.flat()), new Set(['stored']))
      const counts = await Promise.all(
        [0, 1, 2, 3, 4, 5, 6].map(async (n) => (await runOf(storage(), env, `run ${n}`)).eventCount),
      )
      assert.equal(
        counts.reduce((sum, count) => sum + count),
        200,
      )
    })

    test('retries that race give one stored verdict per event', async () => {
      const env = newId()
      const events = Array.from({ length: 30 }, (_, index) => event({ runId: `run ${index % 4}` }))
      const tries = await Promise.all(
        Array.from({ length: 12 }, (_, n) => {
          // Each retry has another order: overlapping batches must not deadlock either.
          const order = n % 2 === 0 ? events : events.toReversed()
          return append(storage(), env, ...order).then((verdicts) => (n % 2 === 0 ? verdicts : verdicts.toReversed()))
        }),
      )
      events.forEach((_, index) => {
        const verdicts = tries.map((verdict) => verdict[index])
        assert.equal(verdicts.filter((verdict) => verdict === 'stored').length, 1)
        assert.equal(verdicts.filter((verdict) => verdict === 'duplicate').length, 11)
      })
      for (const n of [0, 1, 2, 3]) {
        const { eventCount, differingRetries } = await runOf(storage(), env, `run ${n}`)
        assert.deepEqual([eventCount, differingRetries], [n < 2 ? 8 : 7, 0])
      }
    })
  })
}
