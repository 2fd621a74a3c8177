/**
 * Load whose effect can be recomputed from what is stored: event n of a writer is `<writer>-<n>` and uses n tokens.
 * Run as a process (`node load.ts <url> <writer>`), it is a node that writes, and prints what was acknowledged, until
 * it is killed.
 */
import assert from 'node:assert/strict'
import { openPostgresStorage } from '../../../src/storage/postgres/open.ts'
import type { NewEvent } from '../../../src/storage/record/events.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { StorageError } from '../../../src/storage/engine/store.ts'
import { append, llmCall, NOON } from '../suite/sample.ts'

export const ENVIRONMENT = '00000000-0000-7000-8000-000000000001'
const RUNS = 12

function eventOf(writer: string, number: number): NewEvent {
  const runId = `run ${number % RUNS}`
  const id = { eventId: `${writer}-${number}`, runId, agentId: `agent ${number % 3}`, sessionId: 'session' }
  return llmCall(
    { model: 'm', promptTokens: number, totalTokens: number },
    { ...id, payload: JSON.stringify({ number }) },
  )
}

/** Writes batches one after another. Repeats each until it is acknowledged, then reports its event ids. */
export async function writeUntil(
  storage: Storage,
  writer: string,
  isOver: () => boolean,
  acknowledged: (ids: string[]) => void,
): Promise<void> {
  for (let first = 0; !isOver(); first += 20) {
    const events = Array.from({ length: 20 }, (_, n) => eventOf(writer, first + n))
    await retried(() => append(storage, ENVIRONMENT, ...events))
    acknowledged(events.map(({ eventId }) => eventId))
  }
}

/** Repeats the work after a StorageError, like a client. */
async function retried<Result>(work: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

/** Every acknowledged event is stored once, and the sums of runs and hours match the events. */
export async function verify(storage: Storage, acknowledged: Iterable<string>): Promise<void> {
  const missing = new Set(acknowledged)
  let tokens = 0
  let events = 0
  const runs = (await storage.listRuns(ENVIRONMENT, {}, { limit: 100, after: null })).rows
  for (const run of runs) {
    const page = { limit: 1_000_000, order: 'arrival', after: null } as const
    const { rows } = await storage.listEventRows(ENVIRONMENT, run.id, page)
    const used = rows.reduce((sum, { eventId }) => sum + Number(eventId.split('-').at(-1)), 0)
    assert.equal(new Set(rows.map(({ eventId }) => eventId)).size, rows.length)
    assert.deepEqual([run.eventCount, run.promptTokens], [rows.length, used])
    for (const { eventId } of rows) missing.delete(eventId)
    tokens += used
    events += rows.length
  }
  assert.deepEqual([...missing], [])
  const hours = (await storage.readUsage(ENVIRONMENT, 0, 2 * NOON, { limit: 1_000, after: null })).rows
  assert.equal(
    hours.reduce((sum, hour) => sum + hour.promptTokens, 0),
    tokens,
  )
  assert.equal(
    hours.reduce((sum, hour) => sum + hour.events, 0),
    events,
  )
}

if (import.meta.main) {
  const [, , url = '', writer = ''] = process.argv
  // The parent process holds this pipe open.
  process.stdin.on('end', () => process.exit()).resume()
  const storage = await openPostgresStorage({ url })
  const tell = (ids: string[]) => process.stdout.write(`${ids.join(' ')}\n`)
  await Promise.all(['a', 'b', 'c', 'd'].map((name) => writeUntil(storage, `${writer}${name}`, () => false, tell)))
}
