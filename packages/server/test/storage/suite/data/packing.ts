/** Payloads in blocks are returned exactly and bounded in size, and packing never delays recording. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { anyCharacter } from '../../../../../contract/test/any-character.ts'
import type { NewEvent, TimelinePlace } from '../../../../src/storage/record/events.ts'
import { KEEP_ALL, type PackedSlice } from '../../../../src/storage/data/retention.ts'
import { DAY_MS } from '../../../../src/storage/engine/times.ts'
import { isPacked, unpackBatch } from '../../../../src/storage/record/packed-batch.ts'
import type { Storage } from '../../../../src/storage/storage.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { append, batch, event, newId, NOON, outcome, runOf, timelineOf } from '../sample.ts'

/** Packs a run to its end. Returns its slices. */
export async function packRun(
  storage: Storage,
  env: string,
  runId = 'run',
  leastSaved = -Infinity,
): Promise<PackedSlice[]> {
  const run = await runOf(storage, env, runId)
  const slices: PackedSlice[] = []
  for (let after: TimelinePlace | null = null, more = true; more;) {
    const slice: PackedSlice | null = await storage.readUnpacked(env, run.id, after, leastSaved)
    assert.ok(slice)
    assert.deepEqual(await storage.storeBlocks(env, [{ run, slice }]), [true])
    slices.push(slice)
    ;({ after, more } = slice)
  }
  return slices
}

/** Stores that pack each run as soon as it has new events. */
export function packingAtOnce(open: OpenStorage): OpenStorage {
  return async () => {
    const { storage, ...opened } = await open()
    const packing: Storage = {
      ...storage,
      async appendEvents(batch) {
        const verdicts = await storage.appendEvents(batch)
        const { events } = isPacked(batch) ? unpackBatch(batch) : batch
        for (const runId of new Set(events.map((one) => one.runId))) {
          if ((await storage.findRun(batch.environmentId, runId)) === null) continue
          // Batches that arrive together try to pack the same run. Only one succeeds.
          await packRun(storage, batch.environmentId, runId).catch((error: unknown) => {
            if (!(error instanceof assert.AssertionError)) throw error
          })
        }
        return verdicts
      },
    }
    return { ...opened, storage: packing }
  }
}

const blocksOf = (slices: PackedSlice[]) => slices.flatMap(({ blocks }) => blocks)
const payloadsOf = async (storage: Storage, env: string) => (await timelineOf(storage, env)).map((row) => row.payload)
const unpacked = async (storage: Storage, env: string) =>
  (await storage.listUnpackedRuns(env, 0, 100)).map(({ runId }) => runId)

/** Any valid JSON text: with any spacing, duplicate keys, and any form of numbers and escapes. */
const payloadText = fc.oneof(
  { weight: 4, arbitrary: fc.json({ maxDepth: 3 }).map((json) => `{"a":${json}, "a":1.0}`) },
  { weight: 4, arbitrary: fc.string({ unit: anyCharacter }).map((text) => `{ "ü€😀" :${JSON.stringify(text)}}`) },
  fc.constantFrom('{}', `{"n":${'['.repeat(199)}${']'.repeat(199)}}`, '{"\\u0000":-0,"e":1E400,"__proto__":{}}'),
  fc.integer({ min: 1, max: 60_000 }).map((count) => `{"t":"${'añ'.repeat(count)}"}`),
)

export function packingSuite(open: OpenStorage) {
  describe('packing', () => {
    const storage = sharedStorage(open)

    test('keeps every payload to the byte, whatever it is and in whichever order it came', async () => {
      const given = fc.array(fc.tuple(payloadText, fc.integer({ min: 0, max: 20 })), { minLength: 1, maxLength: 130 })
      await fc.assert(
        fc.asyncProperty(given, fc.nat(), async (sent, cut) => {
          const env = newId()
          const events = sent.map(([payload, after]) => event({ payload, time: NOON + after }))
          const late = cut % events.length
          await append(storage(), env, ...events.slice(late))
          // The first byte of a block shows its version.
          assert.ok(blocksOf(await packRun(storage(), env)).every(({ packed }) => packed[0] !== 0x28))
          if (late > 0) await append(storage(), env, ...events.slice(0, late))
          const before = await timelineOf(storage(), env)
          const byId = new Map(events.map(({ eventId, payload }) => [eventId, payload]))
          const same = before.map(({ payload, payloadBytes, eventId }) => {
            return payload === byId.get(eventId) && payloadBytes === Buffer.byteLength(payload)
          })
          assert.ok(!same.includes(false))
          await packRun(storage(), env)
          assert.deepEqual(await timelineOf(storage(), env), before)
        }),
        { numRuns: 12 },
      )
    })

    test('puts at most a hundred payloads or 256 KiB in a block, in the order of the timeline, and saves space', async () => {
      const env = newId()
      const text = (n: number) => `{"n":${n},"text":"${'the same words again '.repeat(20)}"}`
      const large = `{"t":"${'x'.repeat(256 * 1_024)}"}`
      const events = Array.from({ length: 205 }, (_, n) => event({ payload: text(n), time: NOON + 205 - n }))
      await append(storage(), env, ...events, event({ payload: large, time: NOON }))
      const blocks = blocksOf(await packRun(storage(), env))
      assert.deepEqual(
        blocks.map(({ places }) => places.length),
        [1, 100, 100, 5],
      )
      const sent = events.reduce((sum, { payload }) => sum + payload.length, large.length)
      assert.ok(blocks.reduce((sum, { packed }) => sum + packed.length, 0) < sent / 10)
      assert.deepEqual(await payloadsOf(storage(), env), [large, ...events.map(({ payload }) => payload).toReversed()])
    })

    test('leaves payloads in their rows that a block would make smaller by too little', async () => {
      const env = newId()
      await append(storage(), env, event({ payload: '{}' }), outcome('COMPLETED', { time: NOON + 1 }))
      assert.deepEqual(blocksOf(await packRun(storage(), env, 'run', 1)), [])
      assert.deepEqual(await unpacked(storage(), env), [])
      assert.deepEqual(await payloadsOf(storage(), env), ['{}', '{}'])
    })

    test('goes slice by slice, and a page reads no more than it needs', async () => {
      const env = newId()
      const payload = `{"text":"${'z'.repeat(900)}"}`
      for (let part = 0; part < 25; part++) {
        const events = Array.from({ length: 100 }, (_, n) => event({ payload, time: NOON + part * 100 + n }))
        await append(storage(), env, ...events)
      }
      const slices = await packRun(storage(), env)
      assert.ok(slices.length >= 3)
      assert.ok(slices.every(({ blocks }) => blocks.length <= 11))
      const run = await runOf(storage(), env)
      const place = { limit: 100, pageBytes: 10 * payload.length + 200, after: { time: NOON + 1_500, seq: 1e9 } }
      const { rows, more } = await storage().listEvents(env, run.id, place)
      assert.ok(more && rows.length >= 9 && rows.length <= 10, String(rows.length))
      assert.ok(rows.every((row, index) => row.payload === payload && row.time === NOON + 1_501 + index))
    })

    test('compares retries with what lies in a block', async () => {
      const env = newId()
      const sent = Array.from({ length: 20 }, (_, n) =>
        event({ payload: `{"n":${n},"text":"${'again '.repeat(30)}"}` }),
      )
      await append(storage(), env, ...sent)
      await packRun(storage(), env)
      const [one, two, three] = sent as [NewEvent, NewEvent, NewEvent]
      const otherText = { ...two, payload: String(two.payload).replace('"n":1', '"n":7') }
      const others = [otherText, { ...three, payload: '{}' }, { ...three, label: 'Another' }]
      assert.deepEqual(await append(storage(), env, one, ...others), Array(4).fill('duplicate'))
      assert.equal((await runOf(storage(), env)).differingRetries, 3)
      assert.deepEqual(
        await payloadsOf(storage(), env),
        sent.map(({ payload }) => payload),
      )
      assert.deepEqual(await unpacked(storage(), env), [])
    })

    test('takes a run up again when events come later', async () => {
      const env = newId()
      const text = (n: number) => `{"n":${n},"text":"${'later '.repeat(40)}"}`
      await append(storage(), env, event({ payload: text(0) }))
      assert.deepEqual(await unpacked(storage(), env), ['run'])
      await packRun(storage(), env)
      assert.deepEqual(await unpacked(storage(), env), [])
      await append(storage(), env, event({ payload: text(1), time: NOON + 1 }))
      assert.deepEqual(await unpacked(storage(), env), ['run'])
      assert.deepEqual(await payloadsOf(storage(), env), [text(0), text(1)])
      await packRun(storage(), env)
      assert.deepEqual(await unpacked(storage(), env), [])
      assert.deepEqual(await payloadsOf(storage(), env), [text(0), text(1)])
    })

    test('of one run by several nodes stores each payload once, and events that come meanwhile wait', async () => {
      const env = newId()
      const text = (n: number) => `{"n":${n},"text":"${'node '.repeat(50)}"}`
      await append(storage(), env, ...Array.from({ length: 50 }, (_, n) => event({ payload: text(n), time: NOON + n })))
      const run = await runOf(storage(), env)
      const slices = await Promise.all([1, 2, 3].map(() => storage().readUnpacked(env, run.id, null, 0)))
      await append(storage(), env, event({ payload: text(-1), time: NOON - 1 }))
      const stored = await Promise.all(slices.map((slice) => storage().storeBlocks(env, [{ run, slice: slice! }])))
      assert.deepEqual(stored.flat().filter(Boolean), [true])
      assert.deepEqual(await unpacked(storage(), env), ['run'])
      assert.deepEqual(
        await payloadsOf(storage(), env),
        Array.from({ length: 51 }, (_, n) => text(n - 1)),
      )
    })

    test('never takes a run of another environment', async () => {
      const [env, other] = [newId(), newId()]
      await append(storage(), env, event({ payload: `{"text":"${'mine '.repeat(50)}"}` }))
      const run = await runOf(storage(), env)
      assert.equal(await storage().readUnpacked(other, run.id, null, 0), null)
      assert.deepEqual(await unpacked(storage(), other), [])
      const slice = await storage().readUnpacked(env, run.id, null, 0)
      assert.deepEqual(await storage().storeBlocks(other, [{ run, slice: slice! }]), [false])
    })

    test('ends when retention removes the payloads or the run, packed or not', async () => {
      const [workspaceId, env] = [newId(), newId()]
      await storage().createWorkspace({ id: workspaceId, name: workspaceId, createdAt: NOON }, [])
      await storage().createEnvironment({ id: env, workspaceId, name: 'production', createdAt: NOON }, [])
      const settings = { ...KEEP_ALL, runDays: 30, payloadDays: 7 }
      assert.ok(await storage().changeRetention(workspaceId, env, { before: KEEP_ALL, settings }, NOON, []))
      await storage().startRetention(env, NOON)
      const text = (n: number) => `{"n":${n},"text":"${'secret '.repeat(40)}"}`
      const time = NOON - 8 * DAY_MS
      const sent = Array.from({ length: 30 }, (_, n) => event({ payload: text(n), time: time + n }))
      const arrived = (events: NewEvent[]) => storage().appendEvents(batch(env, events, { receivedAt: time }))
      const removePayloads = async () => {
        const { id } = await runOf(storage(), env)
        for (let ids = [id]; ids.length > 0;) {
          ids = (await storage().removeExpiredPayloads(env, NOON, { ids, most: 7, reachedAt: NOON })).rest
        }
      }
      const removeRun = async (now: number) => {
        const { id } = await runOf(storage(), env)
        await storage().removeExpiredRuns(env, now, { ids: [id], most: 7, reachedAt: now })
        while ((await storage().deleteExpiredEvents(env, now, 7)).runsLeft);
      }
      await arrived(sent.slice(0, 20))
      await packRun(storage(), env)
      await arrived(sent.slice(20))
      const run = await runOf(storage(), env)
      const packing = await storage().readUnpacked(env, run.id, null, 0)
      await removePayloads()
      assert.deepEqual(await storage().storeBlocks(env, [{ run, slice: packing! }]), [false])
      const rows = await timelineOf(storage(), env)
      assert.deepEqual(
        rows.map(({ eventId, payload, payloadBytes }) => [eventId, payload, payloadBytes]),
        sent.map(({ eventId }) => [eventId, '{}', 0]),
      )
      // The damaged payload is unknown, so a retry with another payload counts as a duplicate.
      assert.deepEqual(await arrived([{ ...sent[3]!, payload: '{"other":1}' }]), ['duplicate'])
      assert.equal((await runOf(storage(), env)).differingRetries, 0)
      await arrived([event({ payload: text(99), time: time + 99 })])
      await packRun(storage(), env)
      assert.deepEqual((await payloadsOf(storage(), env)).slice(-2), ['{}', text(99)])
      await removeRun(NOON + 30 * DAY_MS)
      assert.equal(await storage().findRun(env, 'run'), null)
      await arrived([event({ payload: text(1), time })])
      await packRun(storage(), env)
      assert.deepEqual(await payloadsOf(storage(), env), [text(1)])
    })
  })
}
