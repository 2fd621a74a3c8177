import type { NewWork } from '../work.ts'
import type { Sql } from './sql.ts'
import { enqueueWork } from './work.ts'

/** Most gaps that are filled again, by a retry or the spool of a dead process, are filled by then. */
const SETTLE_MS = 60_000

export function enqueueGaps(sql: Sql, environmentId: string, ids: readonly string[], at: number): Promise<void> {
  const work = ids.map((subjectId): NewWork => {
    return { kind: 'tell_gaps', environmentId, subjectId, dueAt: at + SETTLE_MS }
  })
  return enqueueWork(sql, work)
}
