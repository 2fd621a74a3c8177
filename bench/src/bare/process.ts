/** The process that works on a store with the driver alone. */
import { answer } from '../child.ts'
import type { Plot } from '../load/shapes.ts'
import type { Times } from '../stats.ts'
import { openPostgresLanes, type Way } from './postgres.ts'
import { readAlone, type PagesAlone } from './reading.ts'
import { recordAlone, type AlonePace, type Lane, type RecordedAlone } from './recording.ts'
import { openSqliteLane } from './sqlite.ts'
import { withSql, type Location } from './sql.ts'

/** Records into a store that is empty at the first call. */
export type RecordAlone = AlonePace & { at: Location; plot: Plot; way: Way }
export type ReadAlone = PagesAlone & { at: Location }

let opened: Promise<Record<Way, Lane[]>> | undefined

answer<RecordAlone | ReadAlone, RecordedAlone | Times>(async (task) => {
  if ('pages' in task) return withSql(task.at, (sql) => readAlone(sql, task))
  opened ??= openLanes(task)
  return recordAlone((await opened)[task.way], task)
})

async function openLanes({ at, plot }: RecordAlone): Promise<Record<Way, Lane[]>> {
  return 'url' in at ? openPostgresLanes(at.url, plot) : { insert: [openSqliteLane(at.file, plot)], copy: [] }
}
