import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { uuidv7At } from '../../../../src/storage/engine/uuid.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { append, batch, event, llmCall, newId, NOON, outcome, runOf } from '../sample.ts'

const MAX = Number.MAX_SAFE_INTEGER

export function runsSuite(open: OpenStorage) {
  describe('a run', () => {
    const storage = sharedStorage(open)

    test('opens with its first stored event, whatever it is', async () => {
      const env = newId()
      const first = event({ time: NOON + 5, agentId: 'a' })
      await storage().appendEvents(batch(env, [first], { receivedAt: NOON + 9 }))
      const run = await runOf(storage(), env)
      assert.match(run.id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      assert.match(run.agentId, /^[0-9a-f-]{36}$/)
      // Ids follow the given clock, not the machine's.
      for (const id of [run.id, run.agentId]) assert.ok(id >= uuidv7At(NOON + 9) && id < uuidv7At(NOON + 11_000), id)
      assert.deepEqual(run, {
        id: run.id,
        runId: 'run',
        sessionId: null,
        userId: null,
        status: 'RUNNING',
        startedAt: NOON + 5,
        endedAt: null,
        agentId: run.agentId,
        agentExternalId: 'a',
        agentName: 'Support bot',
        agentDisplayName: null,
        promptTokens: 0,
        completionTokens: 0,
        totalTokens: 0,
        costNanos: 0,
        eventCount: 1,
        differingRetries: 0,
        errorCount: 0,
        traits: '\n',
        recorders: null,
        uncosted: null,
        failure: null,
        failureMessage: null,
        said: JSON.stringify([0, [NOON + 5, first.eventId, 'Thinks']]),
        lastEventAt: NOON + 5,
        receivedAt: NOON + 9,
        pinnedAt: null,
        ruleClosedAt: null,
        payloadsRemoved: 0,
      })
    })

    test('has its first question as title, else the label of its first step, and its latest answer', async () => {
      const env = newId()
      const said = async () => {
        const row = JSON.parse((await runOf(storage(), env)).said ?? 'null') as [number, [], []?]
        return [row[0], row[1].at(2), row[2]?.at(2)]
      }
      await append(storage(), env, event({ label: 'Later', time: NOON + 9 }), event({ label: 'Start', time: NOON + 2 }))
      assert.deepEqual(await said(), [0, 'Start', undefined])
      const asked = (question: string, answer: string | null, time: number) =>
        event({ said: { question, answer }, time: NOON + time })
      await append(storage(), env, asked('And now?', 'Shipped.', 6))
      assert.deepEqual(await said(), [1, 'And now?', 'Shipped.'])
      await append(storage(), env, asked('Where is it?', 'I look.', 4), event({ label: 'Early', time: NOON }))
      assert.deepEqual(await said(), [1, 'Where is it?', 'Shipped.'])
      await append(
        storage(),
        env,
        asked('Where is it?', null, 8),
        event({ said: { question: null, answer: 'Bye.' }, time: NOON + 7 }),
      )
      assert.deepEqual(await said(), [1, 'Where is it?', 'Bye.'])
    })

    test('can open and close with one event', async () => {
      const env = newId()
      await append(storage(), env, outcome('CANCELLED', { time: NOON + 3 }))
      const { status, startedAt, endedAt } = await runOf(storage(), env)
      assert.deepEqual([status, startedAt, endedAt], ['CANCELLED', NOON + 3, NOON + 3])
    })

    test('spans from its smallest to its largest event time, and keeps its first receive time', async () => {
      const env = newId()
      await storage().appendEvents(batch(env, [event({ time: NOON })], { receivedAt: NOON + 1 }))
      const events = [event({ time: NOON - 4 }), event({ time: NOON + 6 }), event({ time: NOON - 2 })]
      await storage().appendEvents(batch(env, events, { receivedAt: NOON + 2 }))
      const { startedAt, lastEventAt, receivedAt } = await runOf(storage(), env)
      assert.deepEqual([startedAt, lastEventAt, receivedAt], [NOON - 4, NOON + 6, NOON + 1])
    })

    test('is closed by the first stored outcome, whose time is its end; nothing reopens or recloses it', async () => {
      const env = newId()
      await append(storage(), env, event(), outcome('FAILED', { time: NOON + 2 }), outcome('COMPLETED', { time: NOON }))
      await append(storage(), env, outcome('CANCELLED', { time: NOON + 1 }), event({ time: NOON - 1 }))
      const { status, endedAt, startedAt, eventCount } = await runOf(storage(), env)
      assert.deepEqual([status, endedAt, startedAt, eventCount], ['FAILED', NOON + 2, NOON - 1, 5])
    })

    test('is closed by an outcome in a later batch', async () => {
      const env = newId()
      await append(storage(), env, event())
      await append(storage(), env, event(), outcome('COMPLETED', { time: NOON + 2 }))
      const { status, endedAt } = await runOf(storage(), env)
      assert.deepEqual([status, endedAt], ['COMPLETED', NOON + 2])
    })

    test('is not closed by a retry of a stored id', async () => {
      const env = newId()
      const sent = event()
      await append(storage(), env, sent)
      await append(storage(), env, { ...sent, outcome: 'FAILED', eventType: 'SESSION_OUTCOME' })
      assert.equal((await runOf(storage(), env)).status, 'RUNNING')
    })

    test('has the first session that one of its events names', async () => {
      const env = newId()
      await append(storage(), env, event())
      await append(storage(), env, event(), event({ sessionId: 'one' }), event({ sessionId: 'two' }))
      await append(storage(), env, event({ sessionId: 'three' }))
      assert.equal((await runOf(storage(), env)).sessionId, 'one')
    })

    test('sums the usage of the stored events only, also after it is closed', async () => {
      const env = newId()
      const call = llmCall({ promptTokens: 1, completionTokens: 20, totalTokens: 300, costNanos: 4000 })
      await append(storage(), env, call, call)
      await append(storage(), env, { ...call, usage: { ...call.usage!, promptTokens: 9 } }, outcome('COMPLETED'))
      await append(storage(), env, { ...call, eventId: newId() }, event())
      const { promptTokens, completionTokens, totalTokens, costNanos } = await runOf(storage(), env)
      assert.deepEqual([promptTokens, completionTokens, totalTokens, costNanos], [2, 40, 600, 8000])
    })

    test('has sums that saturate at the largest exact integer', async () => {
      const env = newId()
      const most = { promptTokens: MAX - 1, completionTokens: MAX, totalTokens: MAX, costNanos: 1 }
      const one = { promptTokens: 1, completionTokens: 1, totalTokens: MAX, costNanos: MAX }
      await append(storage(), env, llmCall(most))
      await append(storage(), env, llmCall(one))
      await append(storage(), env, llmCall(one), llmCall(one))
      const { promptTokens, completionTokens, totalTokens, costNanos } = await runOf(storage(), env)
      assert.deepEqual([promptTokens, completionTokens, totalTokens, costNanos], [MAX, MAX, MAX, MAX])
    })

    test('is found by its external id first, then by its internal one', async () => {
      const env = newId()
      await append(storage(), env, event({ runId: 'first' }))
      const first = await runOf(storage(), env, 'first')
      assert.deepEqual(await storage().findRun(env, first.id), first)
      assert.deepEqual(await storage().findRun(env, first.id.toUpperCase()), first)
      await append(storage(), env, event({ runId: first.id }))
      const second = await storage().findRun(env, first.id)
      assert.equal(second?.runId, first.id)
      assert.notEqual(second.id, first.id)
    })

    test('is not found from another environment, nor by an unknown id', async () => {
      const env = newId()
      await append(storage(), env, event())
      const { id } = await runOf(storage(), env)
      for (const name of ['run', id]) assert.equal(await storage().findRun(newId(), name), null)
      for (const name of ['other', newId(), '']) assert.equal(await storage().findRun(env, name), null)
    })
  })
}
