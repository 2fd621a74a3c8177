import { pagesOfEvents, pagesOfRuns } from '../../domain/data/export.ts'
import { toOperatorRun } from '../../domain/runs/run.ts'
import { estimatorOf } from '../../prices/price-table.ts'
import type { RunCriteria } from '../../storage/runs/runs.ts'
import { shownCosts } from '../runs/shown-cost.ts'
import { readUncosted } from '../../storage/runs/usage.ts'
import type { Deps } from '../web/deps.ts'
import type { ParquetEvent, ParquetTable, ParquetRows, ParquetTask } from './parquet-thread.ts'
import { moduleUrl } from '../../program/program.ts'
import { createSharedThread, startCalledThread } from '../../threads/threads.ts'

type Reads = Pick<Deps, 'storage' | 'prices'>

interface ParquetRequest {
  environmentId: string
  workspaceId: string
  table: ParquetTable
  filter: RunCriteria
}

/**
 * Sizes of one message to the thread. With ten times as much, data survives young collections: 75 MB at the peak of two
 * files.
 */
const EVENTS_TOGETHER = 100
const CHARS_TOGETHER = 131_072

export async function* parquetFile(
  files: ParquetFiles,
  deps: Reads,
  request: ParquetRequest,
): AsyncGenerator<Uint8Array> {
  const file = files.open(request.table)
  try {
    const pages = request.table === 'runs' ? runPages(deps, request) : eventPages(deps, request)
    for await (const rows of pages) {
      const bytes = await file.add(rows)
      if (bytes.length > 0) yield bytes
    }
    yield await file.end()
  } finally {
    file.close()
  }
}

async function* runPages(deps: Reads, { environmentId, workspaceId, filter }: ParquetRequest) {
  for await (const rows of pagesOfRuns(shownCosts(deps, workspaceId), environmentId, filter, null)) {
    const calls = rows.flatMap(({ uncosted }) => readUncosted(uncosted))
    const estimator = await estimatorOf(deps, workspaceId, calls)
    const scores = await deps.storage.readRunScores(
      environmentId,
      rows.map(({ id }) => id),
    )
    yield rows.map((row) => toOperatorRun(row, estimator, scores.get(row.id)))
  }
}

async function* eventPages(deps: Reads, request: ParquetRequest): AsyncGenerator<ParquetEvent[]> {
  const { storage } = deps
  const { environmentId, workspaceId, filter } = request
  let together: ParquetEvent[] = []
  let chars = 0
  for await (const runs of pagesOfRuns(shownCosts(deps, workspaceId), environmentId, filter, null)) {
    for (const { id, runId, eventCount } of runs) {
      for await (const events of pagesOfEvents(storage, environmentId, id, 0, eventCount)) {
        for (const event of events) {
          chars += event.payload.length
          together.push({ runId, event })
        }
        if (together.length < EVENTS_TOGETHER && chars < CHARS_TOGETHER) continue
        yield together
        together = []
        chars = 0
      }
    }
  }
  yield together
}

/** One thread writes all files, because each thread has a separate heap: two took 150 MB. */

type ParquetFiles = ReturnType<typeof createParquetFiles>

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
