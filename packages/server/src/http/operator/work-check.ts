import type { Check } from '@tacho/contract/operator/doctor.ts'
import type { WorkBacklog } from '../../storage/work.ts'

/** Background work that is due is taken within a second; this late, nobody takes it. */
const LATE_MS = 60_000

/** Whether background work is done: a server may answer well while its queue stands still. */
export function workCheck(backlog: WorkBacklog[], now: number): Check {
  const name = 'background work'
  const due = backlog.reduce((sum, kind) => sum + kind.due, 0)
  const items = backlog.reduce((sum, kind) => sum + kind.items, 0)
  const detail = `${items} waiting or under way, ${due} of them due`
  const late = backlog.find(({ dueSince }) => dueSince !== null && dueSince < now - LATE_MS)
  if (late?.dueSince == null) return { name, ok: true, detail }
  const since = new Date(late.dueSince).toISOString()
  return { name, ok: false, detail: `${detail}; ${late.kind} since ${since}. The log says why it is not done` }
}
