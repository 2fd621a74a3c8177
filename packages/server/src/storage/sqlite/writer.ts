import { parentPort, workerData } from 'node:worker_threads'
import { collectWhenIdle } from '../../threads/threads.ts'
import { changedRunsOf, runAct } from '../sql/acts.ts'
import type { DamagedPayload, DamagedRow } from '../sql/engine/sql.ts'
import { batchAppender } from '../sql/record/append.ts'
import { sqliteAppendEngine } from './append.ts'
import { countChanges, counted } from './transaction.ts'
import { checkpointer } from './checkpoint.ts'
import { openDatabase, assertDurable, durability, sqliteSql } from './database.ts'
import { storageError } from './errors.ts'
import { sentError, type Call, type Replies, type Reply } from './thread.ts'
import { unpackBatch, type PackedBatch } from '../record/packed-batch.ts'

/** About 2,500 events of 1 kB: larger commits gain nothing and keep others waiting. */
const COMMIT_BYTES = 4 * 1_048_576

if (parentPort === null) throw new Error('writer.ts runs as a worker thread')
const port = parentPort
const { file } = workerData as { file: string }
const db = openDatabase(file)
const damaged: (DamagedPayload | DamagedRow)[] = []
const sql = sqliteSql(db, (damagedThing) => damaged.push(damagedThing))
const changes = countChanges(db, file)
const engine = sqliteAppendEngine(db, sql, changes)
const commit = batchAppender(engine, (what, error) => send({ replies: [], warning: { what, error: sentError(error) } }))
const checkpoint = checkpointer(db)
assertDurable(db)
collectWhenIdle()

const queue: Call[] = []
let draining = false

port.on('message', (call: Call) => {
  queue.push(call)
  // Runs after the messages that have already arrived, so that they share a commit.
  if (!draining) setImmediate(() => void drain())
  draining = true
})

async function drain(): Promise<void> {
  while (queue.length > 0) {
    const batches = takeBatches()
    if (batches.length > 0) await appendTogether(batches)
    else await answer(queue.shift())
    tidy()
  }
  draining = false
}

/** No caller waits for the checkpoint. If it fails, the next commit reports the failure, and it is tried again. */
function tidy(): void {
  try {
    if (db.open) checkpoint.whenGrown()
  } catch (error) {
    if (storageError(error) === error) throw error
  }
}

function takeBatches(): Call[] {
  let bytes = 0
  const end = queue.findIndex((call, index) => {
    if (call.act !== 'appendEvents') return true
    bytes += (call.args[0] as PackedBatch).bytes
    return index > 0 && bytes > COMMIT_BYTES
  })
  return queue.splice(0, end === -1 ? queue.length : end)
}

async function appendTogether(calls: Call[]): Promise<void> {
  const batches = calls.map(({ args }) => unpackBatch(args[0] as PackedBatch))
  const committed = await commit(batches)
  const replies = committed.map((outcome, index): Reply => {
    const id = calls[index]?.id ?? 0
    return 'error' in outcome ? { id, error: sentError(outcome.error) } : { id, result: outcome.verdicts }
  })
  send({ replies, commits: 1, events: batches.reduce((sum, { events }) => sum + events.length, 0) })
}

async function answer(call: Call | undefined): Promise<void> {
  if (call === undefined) return
  const startedAt = performance.now()
  const reply = await perform(call).then(
    (result): Reply => ({ id: call.id, result }),
    (error: unknown): Reply => ({ id: call.id, error: sentError(storageError(error)) }),
  )
  send({ replies: [reply], actMs: performance.now() - startedAt, ...(db.open ? { freeBytes: freeBytes() } : {}) })
  if (call.act === 'close') port.close()
}

async function perform({ act, args }: Call): Promise<unknown> {
  if (act === 'appendEvents') throw new Error('appendEvents must go through takeBatches')
  if (act === 'backup' || act === 'check') throw new Error(`${act} is for a reader`)
  if (act === 'close') return close()
  if (act === 'ping') return db.prepare('SELECT 1').get()
  if (act === 'durability') return durability(db)
  const result = await counted(db, changes, 1, () => runAct(sql, act, args))
  const changedRuns = changedRunsOf(act, args, result)
  if (changedRuns.length > 0) engine.forgetRuns(String(args[0]), changedRuns)
  return result
}

function freeBytes(): number {
  const [pages, size] = ['freelist_count', 'page_size'].map((name) => db.pragma(name, { simple: true }) as number)
  return (pages ?? 0) * (size ?? 0)
}

function close(): void {
  try {
    checkpoint.all()
  } catch {
    // If the checkpoint fails, the log stays beside the store, and the next start reads it.
  }
  db.close()
  changes.close()
}

function send(replies: Replies): void {
  port.postMessage({ ...replies, damaged: damaged.splice(0) })
}
