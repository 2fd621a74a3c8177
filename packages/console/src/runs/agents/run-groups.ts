/** Sums runs by agent or by session. Pure. */
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { addCosts, costsOf, NO_COSTS, type Costs } from '../../web/text/costs.ts'

interface RunGroup {
  /** The group's value in the filter of the list of runs. */
  key: string
  name: string
  runs: number
  running: number
  completed: number
  failed: number
  cancelled: number
  /** The 95th percentile of the duration of ended runs in ms; null while none has ended. */
  p95: number | null
  cost: Costs
  /** Start of the newest run, ISO 8601. */
  lastStartedAt: string
}

const COUNTS = { RUNNING: 'running', COMPLETED: 'completed', FAILED: 'failed', CANCELLED: 'cancelled' } as const

/** Groups in the order of the runs, which are sorted newest first. Leaves out runs without a session. */
export function groupRuns(runs: readonly OperatorRun[], by: 'agent' | 'session'): RunGroup[] {
  const groups = new Map<string, { group: RunGroup; lengths: number[] }>()
  for (const run of runs) {
    const key = by === 'agent' ? (run.agentId ?? run.agent.name) : run.sessionId
    if (key === null) continue
    const place = by === 'agent' ? run.agent.id : key
    const placeGroup = groups.get(place) ?? {
      group: emptyGroup(key, by === 'agent' ? run.agent.name : key, run),
      lengths: [],
    }
    groups.set(place, placeGroup)
    const { group, lengths } = placeGroup
    group.runs++
    group[COUNTS[run.status]]++
    group.cost = addCosts(group.cost, costsOf(run))
    if (run.endedAt !== null) lengths.push(Date.parse(run.endedAt) - Date.parse(run.startedAt))
  }
  return [...groups.values()].map(({ group, lengths }) => ({ ...group, p95: percentile(lengths, 0.95) }))
}

/** The percentile by nearest rank, which is always one of the values. */
function percentile(values: readonly number[], wantedShare: number): number | null {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.ceil(sorted.length * wantedShare) - 1] ?? null
}

function emptyGroup(key: string, name: string, { startedAt }: OperatorRun): RunGroup {
  const counts = { runs: 0, running: 0, completed: 0, failed: 0, cancelled: 0 }
  return { key, name, ...counts, p95: null, cost: NO_COSTS, lastStartedAt: startedAt }
}

/** Names that runs used, with the number of runs for each, most used first. Pure. */
export function usedBy<Run>(runs: readonly Run[], namesOf: (run: Run) => readonly string[]): [string, number][] {
  const counts = new Map<string, number>()
  for (const run of runs) for (const name of namesOf(run)) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1))
}
