import type { CompletenessStore, GapsNews } from '../completeness.ts'
import type { NewWork, WorkHold } from '../work.ts'
import { write, type Acts } from './act.ts'
import type { Sql } from './sql.ts'
import { announce } from './webhooks/deliveries.ts'
import { enqueueWork, finishWork } from './work.ts'

export const completenessActs = {
  tellGaps: write(tellGaps),
} satisfies Acts<CompletenessStore>

async function tellGaps(sql: Sql, hold: WorkHold, environmentId: string, news: GapsNews | null): Promise<boolean> {
  // First, because it checks the owner.
  if ((await finishWork(sql, hold)) === 0) return false
  if (news !== null) await announce(sql, environmentId, 'run.incomplete', [news])
  return true
}

/** Most gaps that are filled again, by a retry or the spool of a dead process, are filled by then. */
const SETTLE_MS = 60_000

/** Part of the act that finds gaps in runs, by their internal ids. */
export function enqueueGaps(sql: Sql, environmentId: string, ids: readonly string[], at: number): Promise<void> {
  const work = ids.toSorted().map((subjectId): NewWork => {
    return { kind: 'tell_gaps', environmentId, subjectId, dueAt: at + SETTLE_MS }
  })
  return enqueueWork(sql, work)
}
