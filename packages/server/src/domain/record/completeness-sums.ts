import type { CompletenessQuery, CompletenessSum } from '@tacho/contract/record/completeness.ts'
import { MOST_REASONS, readRecorders, type Drop, type Recorder } from '../../storage/record/completeness.ts'
import type { GapRow } from '../../storage/runs/runs.ts'
import { countsOf, dropsOfAll, toDrops, toRecorder, type Counts } from './completeness.ts'
import { isoTime } from '../../storage/engine/iso-time.ts'

export interface Sum extends Pick<CompletenessSum, 'key' | 'name' | 'runs' | 'newestRun'> {
  counts: Counts
  drops: Map<string, Drop>
}

export interface SumPlace {
  lost: number
  key: string
}

export function completenessSums(by: CompletenessQuery['by']) {
  const sums = new Map<string, Sum>()

  function addGroup(key: string, name: string, recorders: readonly Recorder[], run: GapRow): void {
    const counts = countsOf(recorders.map(toRecorder))
    if (counts.recorded === counts.arrived) return
    const known = sums.get(key)
    const { id, runId, startedAt } = run
    sums.set(key, {
      ...(known ?? { key, name, newestRun: { id, runId, startedAt: isoTime(startedAt) } }),
      runs: (known?.runs ?? 0) + 1,
      counts: known ? countsOf([known.counts, counts]) : counts,
      drops: dropsOfAll(recorders, known?.drops),
    })
  }

  return {
    /** Call it with the newest run first. Returns the number of recorders. */
    add(run: GapRow): number {
      const recorders = readRecorders(run.recorders)
      if (by === 'agent') addGroup(run.agentId, run.agentDisplayName ?? run.agentName, recorders, run)
      else for (const [id, own] of Map.groupBy(recorders, ({ clientId }) => clientId)) addGroup(id, id, own, run)
      return recorders.length
    },
    after(place: SumPlace | null): Sum[] {
      const places = [...sums.values()].map((sum) => ({ sum, place: placeOf(sum) }))
      return places
        .filter((one) => place === null || compare(one.place, place) > 0)
        .toSorted((one, other) => compare(one.place, other.place))
        .map(({ sum }) => sum)
    },
  }
}

export const placeOf = ({ key, counts }: Sum): SumPlace => ({ lost: counts.recorded - counts.arrived, key })

function compare(one: SumPlace, other: SumPlace): number {
  if (one.lost !== other.lost) return other.lost - one.lost
  return one.key === other.key ? 0 : one.key < other.key ? -1 : 1
}

export function toSum({ counts, drops, ...sum }: Sum): CompletenessSum {
  const most = toDrops(drops)
    .toSorted((a, b) => b.count - a.count)
    .slice(0, MOST_REASONS)
  return { ...sum, ...counts, drops: most }
}
