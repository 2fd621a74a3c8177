/** One thread writes all files: each thread has a heap of its own, and two took 150 MB. */
import { moduleUrl } from '../../program/module-url.ts'
import { createSharedThread, startCalledThread } from '../../threads/called-thread.ts'
import type { ParquetRows, ParquetTable, ParquetTask } from './parquet-thread.ts'

export type ParquetFiles = ReturnType<typeof createParquetFiles>

const HEAP_MIB = 128
const IDLE_MS = 10_000

export function createParquetFiles(idleMs = IDLE_MS) {
  const threads = createSharedThread<ParquetTask, Uint8Array>((onEnd) => {
    const resourceLimits = { maxOldGenerationSizeMb: HEAP_MIB }
    return startCalledThread(moduleUrl('parquet-thread', import.meta.url), { name: 'parquet', resourceLimits }, onEnd)
  }, idleMs)
  let lastFile = 0
  return {
    open(table: ParquetTable) {
      const thread = threads.enter()
      const file = ++lastFile
      return {
        add: (rows: ParquetRows) => thread.call({ file, table, rows }),
        end: () => thread.call({ file, table, rows: 'end' }),
        close(): void {
          thread.tell({ file, table, rows: 'forget' })
          threads.leave()
        },
      }
    },
    close: threads.close,
  }
}
