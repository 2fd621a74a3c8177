import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { simulate, type SimulateOptions } from '../../../src/jobs/policies/simulate.ts'
import { openSqliteStorage } from '../../../src/storage/sqlite/open.ts'
import type { NewSimulationRow, SimulationRow } from '../../../src/storage/policies/policies.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { newHome } from '../../storage/suite/policies/configuration-sample.ts'
import { append, event, newId } from '../../storage/suite/sample.ts'

const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-simulate-'))
const HOUR = 60 * 60 * 1000
const now = Date.now()
let storage: Storage
let environmentId: string

before(async () => {
  const onTrouble = (error: Error) => {
    throw error
  }
  storage = await openSqliteStorage({ directory, minFreeDiskBytes: 0, onTrouble })
  environmentId = (await newHome(storage)).development
  // 5 calls an hour over two days, each in its own run.
  const calls = Array.from({ length: 240 }, (_, index) =>
    event({
      eventType: 'TOOL_CALL',
      runId: `run ${index}`,
      time: now - index * (HOUR / 5) - 1,
      payload: JSON.stringify({ toolName: `tool ${index % 2}` }),
    }),
  )
  await append(storage, environmentId, ...calls)
})
after(async () => {
  await storage.close()
  rmSync(directory, { recursive: true })
})

/** Queues a simulation. */
async function queued(given: Partial<NewSimulationRow> = {}): Promise<SimulationRow> {
  const id = newId()
  const policy = {
    condition: 'tool.name == "tool 0"',
    severity: 'LOW' as const,
    action: 'BLOCK' as const,
    onError: null,
    days: 30,
    toolLabels: [],
    flow: null,
  }
  const row = { id, environmentId, ...policy, createdAt: now, createdBy: 'ada', ...given }
  await storage.createSimulation(row, { waiting: 100, kept: 100 }, [])
  return reread(id)
}

async function reread(id: string): Promise<SimulationRow> {
  const row = await storage.findSimulation(environmentId, id)
  assert.ok(row)
  return row
}

async function perform(id: string, options: Partial<SimulateOptions> = {}, signal = new AbortController().signal) {
  const handler = simulate({ storage, now: () => now, ...options })
  const item = { environmentId, subjectId: id, attempts: 1, lastError: null }
  await handler.perform(item, { kind: handler.kind, owner: 'node', items: [item] }, signal)
  return reread(id)
}

const isQueued = async (id: string) => {
  const claimed = await storage.claimWork({
    kind: 'simulate',
    owner: 'test',
    now: now + 1,
    leaseUntil: now + 1,
    limit: 1000,
  })
  return claimed.some(({ subjectId }) => subjectId === id)
}

test('slices of any size give the same result', async () => {
  const whole = await perform((await queued()).id)
  assert.deepEqual([whole.status, whole.scanned, whole.total, whole.result?.hits], ['DONE', 240, 240, 120])
  for (const sliceCalls of [1, 7, 240]) {
    const { result } = await perform((await queued()).id, { sliceCalls })
    assert.deepEqual(result, whole.result)
  }
})

test('if there are too many calls, the newest are used, and the result says so', async () => {
  const { result, scanned, total } = await perform((await queued()).id, { maxCalls: 50 })
  assert.ok(result)
  // Two steps of four hours have 20 calls each. A third step would exceed the limit.
  assert.deepEqual([result.calls, scanned, total], [40, 40, 40])
  assert.equal(Date.parse(result.to) - Date.parse(result.from), 8 * HOUR)
  assert.deepEqual(
    result.warnings.map(({ code }) => code),
    ['not_all_looked_at'],
  )
  const few = await perform((await queued()).id, { maxCalls: 5 })
  assert.equal(few.result?.calls, 5, 'a step that is too many by itself is looked at as far as it goes')
  assert.equal(few.result.warnings[0]?.code, 'not_all_looked_at')
  const all = await perform((await queued()).id, { maxCalls: 240 })
  assert.deepEqual([all.result?.calls, all.result?.warnings], [240, []])
})

test('runs are listed up to a bound and counted beyond it', async () => {
  const { result } = await perform((await queued({ condition: 'true' })).id)
  assert.deepEqual([result?.runs, result?.hitRuns.length, result?.hitRuns[0]?.runId], [240, 100, 'run 239'])
})

test('a cancelled simulation stops and stays cancelled', async () => {
  const { id } = await queued()
  let slices = 0
  const cancelled = await perform(id, {
    sliceCalls: 10,
    storage: {
      ...storage,
      listToolCalls: async (...args) => {
        slices += 1
        if (slices === 2) await storage.cancelSimulation(environmentId, id, now, [])
        return storage.listToolCalls(...args)
      },
    },
  })
  assert.deepEqual([cancelled.status, cancelled.result], ['CANCELLED', null])
  assert.equal(await isQueued(id), false)
  const before = await queued()
  await storage.cancelSimulation(environmentId, before.id, now, [])
  assert.equal((await perform(before.id)).status, 'CANCELLED', 'before it began')
})

test('a simulation interrupted by the end of the process starts again', async () => {
  const { id } = await queued()
  const stopping = new AbortController()
  const listToolCalls: Storage['listToolCalls'] = async (...args) => {
    stopping.abort()
    return storage.listToolCalls(...args)
  }
  const interrupted = perform(id, { sliceCalls: 10, storage: { ...storage, listToolCalls } }, stopping.signal)
  await assert.rejects(interrupted)
  assert.equal((await reread(id)).status, 'RUNNING')
  assert.equal(await isQueued(id), true)
  assert.equal((await perform(id)).status, 'DONE')
  assert.equal(await isQueued(id), false)
})

test('a simulation that keeps failing ends FAILED with its reason, and leaves the queue', async () => {
  const { id } = await queued()
  const handler = simulate({ storage, now: () => now })
  const item = { environmentId, subjectId: id, attempts: 9, lastError: null }
  await handler.giveUp(item, 'it is broken', { kind: handler.kind, owner: 'node', items: [item] })
  const row = await reread(id)
  assert.deepEqual([row.status, row.error, row.endedAt], ['FAILED', 'it is broken', now])
  assert.equal(await isQueued(id), false)
})

test('a condition that this version cannot compile is an error and does not end the process', async () => {
  const { id } = await queued({ condition: 'tool.' })
  await assert.rejects(perform(id))
})
