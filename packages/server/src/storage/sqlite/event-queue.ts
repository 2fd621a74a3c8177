import type { EventBatchRows, EventVerdict } from '../events.ts'
import { batchBytes } from '../sql/append/batch-bytes.ts'
import { StorageError, type WriteRefusal } from '../store.ts'
import type { Disk } from './disk.ts'
import type { WaitingCommits } from '../waiting-commits.ts'
import { packBatch } from './packed-batch.ts'
import type { Thread } from './thread.ts'

const MESSAGES: Record<WriteRefusal, string> = {
  overloaded: 'Too many events wait for a commit',
  storage_full: 'The disk is nearly full',
  storage_unavailable: 'The store has failed',
}

export function eventQueue(
  writer: Thread,
  disk: Disk,
  isDamaged: () => boolean,
  maxBytes: number,
  commits: WaitingCommits,
) {
  let queued = 0

  function refused(bytes = 0): WriteRefusal | null {
    if (!writer.alive() || isDamaged() || disk.gone() !== null) return 'storage_unavailable'
    if (disk.nearlyFull()) return 'storage_full'
    // A batch larger than the queue is taken alone.
    return queued >= maxBytes || (queued > 0 && queued + bytes > maxBytes) ? 'overloaded' : null
  }

  async function append(batch: EventBatchRows): Promise<EventVerdict[]> {
    const bytes = batchBytes(batch)
    const code = refused(bytes)
    if (code !== null) throw new StorageError(code, MESSAGES[code])
    queued += bytes
    try {
      return (await commits.during(writer.call('appendEvents', [packBatch(batch, bytes)]))) as EventVerdict[]
    } catch (error) {
      if (error instanceof StorageError && error.code === 'storage_full') disk.reportFull()
      throw error
    } finally {
      queued -= bytes
    }
  }

  return { append, refused: () => refused(), bytes: () => queued }
}
