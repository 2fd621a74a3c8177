/**
 * Batches on their way to the writer. The writer gets only as many at a time as fit into one commit. The others wait, and
 * workspaces take turns, so that none waits for another's whole backlog.
 */
import type { EventBatchRows, EventVerdict } from '../record/events.ts'
import { batchBytes, packedBuffers, isPacked, packBatch, type PackedBatch } from '../record/packed-batch.ts'
import { StorageError, type WriteRefusal } from '../engine/store.ts'
import { TurnsByWorkspace, type Holder } from '../engine/turns-by-workspace.ts'
import type { Disk } from './files.ts'
import type { WaitingCommits } from '../engine/store-checks.ts'
import type { Thread } from './thread.ts'

const MESSAGES: Record<WriteRefusal, string> = {
  overloaded: 'Too many events wait for a commit',
  storage_full: 'The disk is nearly full',
  storage_unavailable: 'The store has failed',
}

/** Bytes that the writer gets at a time while one workspace records: about 1,400 events of 1 kB. */
const WRITER_BYTES = 2 * 1_048_576
/** Smaller commits while several workspaces record, so that a batch waits less for those of others. */
const SHARED_WRITER_BYTES = 512 * 1_024
/** A workspace counts as recording for this long after its last batch. */
const RECORDS_MS = 1_000

interface Waiting {
  holder: Holder
  bytes: number
  begin: () => void
}

export function eventQueue(
  writer: Pick<Thread, 'call' | 'alive'>,
  disk: Disk,
  isDamaged: () => boolean,
  maxBytes: number,
  commits: WaitingCommits,
  now = () => performance.now(),
) {
  const waiting = new TurnsByWorkspace<Waiting>()
  let [queued, inWriter] = [0, 0]
  const last = { workspace: '', otherAt: -Infinity }

  function refused(bytes = 0): WriteRefusal | null {
    if (!writer.alive() || isDamaged() || disk.gone() !== null) return 'storage_unavailable'
    if (disk.nearlyFull()) return 'storage_full'
    // A batch larger than the queue is accepted only if the queue is empty.
    return queued >= maxBytes || (queued > 0 && queued + bytes > maxBytes) ? 'overloaded' : null
  }

  /** Packs the batch before it waits, because each garbage collection would copy the events of a waiting batch. */
  const append = (batch: EventBatchRows | PackedBatch): Promise<EventVerdict[]> =>
    appendPacked(isPacked(batch) ? batch : packBatch(batch, batchBytes(batch)))

  async function appendPacked(batch: PackedBatch): Promise<EventVerdict[]> {
    const { bytes } = batch
    const code = refused(bytes)
    if (code !== null) throw new StorageError(code, MESSAGES[code])
    queued += bytes
    try {
      return await commits.during(write(batch))
    } catch (error) {
      if (error instanceof StorageError && error.code === 'storage_full') disk.reportFull()
      throw error
    } finally {
      queued -= bytes
    }
  }

  async function write(batch: PackedBatch): Promise<EventVerdict[]> {
    await turn(batch.holder ?? { workspace: batch.environmentId, credential: '' }, batch.bytes)
    try {
      return (await writer.call('appendEvents', [batch], packedBuffers(batch))) as EventVerdict[]
    } finally {
      inWriter -= batch.bytes
      sendNext()
    }
  }

  function turn(holder: Holder, bytes: number): Promise<void> {
    if (holder.workspace !== last.workspace) {
      if (last.workspace !== '') last.otherAt = now()
      last.workspace = holder.workspace
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.push({ holder, bytes, begin: resolve })
    sendNext()
    return promise
  }

  function sendNext(): void {
    while (inWriter < (now() - last.otherAt < RECORDS_MS ? SHARED_WRITER_BYTES : WRITER_BYTES)) {
      const next = waiting.shift(() => true)
      if (next === null) return
      inWriter += next.bytes
      next.begin()
    }
  }

  return { append, refused: () => refused(), bytes: () => queued }
}
