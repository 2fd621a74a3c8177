import type { Check } from '@tacho/contract/web/doctor.ts'
import type { WorkBacklog } from '../../storage/engine/work.ts'

/** Due work starts within a second; after this long, no worker is taking it. */
const LATE_MS = 60_000

export function workCheck(backlog: WorkBacklog[], now: number): Check {
  const name = 'background work'
  const due = backlog.reduce((sum, kind) => sum + kind.due, 0)
  const items = backlog.reduce((sum, kind) => sum + kind.items, 0)
  const detail = `${items} waiting or running, ${due} of them due`
  const late = backlog.flatMap(({ kind, dueSince }) =>
    dueSince !== null && dueSince < now - LATE_MS ? [`${kind} since ${new Date(dueSince).toISOString()}`] : [],
  )
  if (late.length === 0) return { name, ok: true, detail }
  return { name, ok: false, detail: `${detail}; ${late.join(', ')}. See the log for the reason` }
}
