/**
 * One thread writes all files: each thread has a heap of its own, and two took 150 MB. It ends soon after the last
 * file.
 */
import { moduleUrl } from '../../../program/module-url.ts'
import { createSharedThread, startCalledThread } from '../../../threads/called-thread.ts'
import type { ParquetRows, ParquetTable, ParquetTask } from './parquet-thread.ts'

export interface ParquetFile {
  /** Bytes that follow those before; often none. */
  add(rows: ParquetRows): Promise<Uint8Array>
  end(): Promise<Uint8Array>
  /** Also for a file that has not ended. */
  close(): void
}

export interface ParquetFiles {
  open(table: ParquetTable): ParquetFile
  close(): Promise<void>
}

const HEAP_MIB = 128
const IDLE_MS = 10_000

export function createParquetFiles(idleMs = IDLE_MS): ParquetFiles {
  const threads = createSharedThread<ParquetTask, Uint8Array>((onEnd) => {
    const resourceLimits = { maxOldGenerationSizeMb: HEAP_MIB }
    return startCalledThread(moduleUrl('parquet-thread', import.meta.url), { name: 'parquet', resourceLimits }, onEnd)
  }, idleMs)
  let lastFile = 0
  return {
    open(table) {
      const thread = threads.enter()
      const file = ++lastFile
      return {
        add: (rows) => thread.call({ file, table, rows }),
        end: () => thread.call({ file, table, rows: null }),
        close() {
          thread.tell({ file, table, rows: 'forget' })
          threads.leave()
        },
      }
    },
    close: threads.close,
  }
}
