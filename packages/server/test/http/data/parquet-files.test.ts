/** The thread that writes all Parquet files of a process. */
import assert from 'node:assert/strict'
import diagnostics from 'node:diagnostics_channel'
import { test, type TestContext } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { zstdDecompressSync } from 'node:zlib'
import { parquetReadObjects } from 'hyparquet'
import type { ParquetEvent } from '../../../src/http/data/parquet-thread.ts'
import { createParquetFiles } from '../../../src/http/data/parquet-file.ts'
import { eventually } from '../../setup/eventually.ts'

/** Collects the threads that are started from now on. */
function watchThreads(t: TestContext): Worker[] {
  const started: Worker[] = []
  const add = (message: unknown) => void started.push((message as { worker: Worker }).worker)
  diagnostics.subscribe('worker_threads', add)
  t.after(() => diagnostics.unsubscribe('worker_threads', add))
  return started
}

const rowOf = (eventId: string, payload = '{}'): ParquetEvent => {
  const event = { eventId, eventType: 'AGENT_STEP', label: 'step', time: 1, receivedAt: 2, payload, payloadBytes: 2 }
  return { runId: 'run', event: { ...event, latencyMicros: null } as ParquetEvent['event'] }
}

async function idsIn(...pieces: Uint8Array[]): Promise<unknown[]> {
  const { buffer } = Uint8Array.from(Buffer.concat(pieces))
  const compressors = { ZSTD: (data: Uint8Array) => zstdDecompressSync(data) }
  const rows = await parquetReadObjects({ file: buffer, columns: ['eventId'], compressors })
  return rows.map(({ eventId }) => eventId)
}

test('files at the same time have one thread and each their own rows; one that fails leaves the other whole', async (t) => {
  const started = watchThreads(t)
  const files = createParquetFiles()
  t.after(() => files.close())
  const [one, other, broken] = [files.open('events'), files.open('events'), files.open('events')]
  const begun = await Promise.all([one.add([rowOf('1')]), other.add([rowOf('2')])])
  await assert.rejects(broken.add([rowOf('3', 'no JSON')]), SyntaxError)
  broken.close()
  await Promise.all([one.add([rowOf('4')]), other.add([rowOf('5')])])
  assert.deepEqual(await idsIn(begun[0], await one.end()), ['1', '4'])
  assert.deepEqual(await idsIn(begun[1], await other.end()), ['2', '5'])
  assert.equal(started.length, 1)
})

test('the thread ends after the last file, and the next file has another one', async (t) => {
  const started = watchThreads(t)
  const files = createParquetFiles(1)
  t.after(() => files.close())
  const [first, second] = [files.open('events'), files.open('events')]
  first.close()
  assert.deepEqual(await idsIn(await second.add([rowOf('1')]), await second.end()), ['1'])
  second.close()
  await eventually(() => started[0]?.threadId === -1, 'the end of the thread')
  const next = files.open('events')
  assert.deepEqual(await idsIn(await next.add([rowOf('2')]), await next.end()), ['2'])
  assert.equal(started.length, 2)
})

test('a thread that ends breaks its files, and no later one', async (t) => {
  const started = watchThreads(t)
  const files = createParquetFiles()
  t.after(() => files.close())
  const broken = files.open('events')
  await broken.add([rowOf('1')])
  await started[0]?.terminate()
  await assert.rejects(broken.end(), /the parquet thread ended/)
  broken.close()
  const next = files.open('events')
  assert.deepEqual(await idsIn(await next.add([rowOf('2')]), await next.end()), ['2'])
})
