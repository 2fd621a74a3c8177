/**
 * The Parquet files of a process, which one thread writes: each thread has a heap of its own, and two took 150 MB. The
 * thread starts with the first file and ends soon after the last one.
 */
import { Worker } from 'node:worker_threads'
import { moduleUrl } from '../../../program/module-url.ts'
import { PendingCalls } from '../../../threads/pending-calls.ts'
import type { ParquetAnswer, ParquetRows, ParquetTable, ParquetTask } from './parquet-thread.ts'

/** A file that is being written. Pages are added one after another. */
export interface ParquetFile {
  /** Resolves with the bytes that follow those before; often none. */
  add(rows: ParquetRows): Promise<Uint8Array>
  /** Resolves with the last bytes. */
  end(): Promise<Uint8Array>
  /** Forgets the file, whether it ended or not. */
  close(): void
}

export interface ParquetFiles {
  open(table: ParquetTable): ParquetFile
  close(): Promise<void>
}

const HEAP_MIB = 128
const IDLE_MS = 10_000

export function createParquetFiles(idleMs = IDLE_MS): ParquetFiles {
  const calls = new PendingCalls<Uint8Array>()
  const open = new Set<number>()
  let lastFile = 0
  let thread: Worker | null = null
  let idle: NodeJS.Timeout | undefined

  function start(): Worker {
    const started = new Worker(moduleUrl('parquet-thread', import.meta.url), {
      name: 'tacho-parquet',
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
    })
    started.unref()
    started.on('message', (answer: ParquetAnswer) => {
      if ('bytes' in answer) calls.resolve(answer.id, answer.bytes)
      else calls.reject(answer.id, answer.error)
    })
    started.once('error', (error) => end(started, error instanceof Error ? error : new Error(String(error))))
    started.once('exit', (code) => end(started, new Error(`the Parquet thread ended with code ${code}`)))
    return started
  }

  function end(ended: Worker, error: Error): void {
    if (thread !== ended) return
    thread = null
    calls.rejectAll(error)
  }

  async function stop(): Promise<void> {
    const ended = thread
    thread = null
    await ended?.terminate()
  }

  return {
    open(table) {
      clearTimeout(idle)
      const writer = (thread ??= start())
      const file = ++lastFile
      open.add(file)
      const ask = async (rows: ParquetRows | null): Promise<Uint8Array> => {
        if (thread !== writer) throw new Error('the Parquet thread ended')
        return calls.start((id) => writer.postMessage({ id, file, table, rows } satisfies ParquetTask))
      }
      return {
        add: ask,
        end: () => ask(null),
        close() {
          writer.postMessage({ id: null, file } satisfies ParquetTask)
          open.delete(file)
          if (open.size === 0) idle = setTimeout(() => void stop(), idleMs).unref()
        },
      }
    },
    close() {
      clearTimeout(idle)
      return stop()
    },
  }
}
