/** Source: docs/decisions/0104-what-of-a-run-arrived.md. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type {
  Completeness,
  RecorderCompleteness,
  CompletenessQuery,
  CompletenessSum,
} from '@tacho/contract/record/completeness.ts'
import {
  droppedBy,
  MOST_REASONS,
  MOST_RECORDERS,
  readRecorders,
  recordedBy,
  type Drop,
  type Recorder,
} from '../../storage/record/completeness.ts'
import { isoTime } from '../../storage/engine/times.ts'
import { hasAtMost } from '../web/text.ts'
import type { GapRow } from '../../storage/runs/runs.ts'

/** A malformed number counts as absent: an event is never rejected for it. */
const NUMBER = /^[0-9a-z]{5}[1-9a-z][0-9a-z]{0,6}\.?$/
const NUMBER_MAX = 36 ** 7 - 1
const RECORDER = /^[0-9a-z]{5}$/
const REASON = /^[a-z_]{1,40}$/
const DROPPED_MAX = 1_000_000_000

export function numberInRunOf(n: unknown): string | null {
  return typeof n === 'string' && NUMBER.test(n) ? n : null
}

export function dropsOf(number: string | null, dropped: unknown): string | null {
  return number === null || dropped === undefined ? null : dropsText(dropped)
}

/** `{"queue_full":[3,1790000000000]}`: the number of dropped events so far, and the time of the last. */
function dropsText(dropped: unknown): string | null {
  if (typeof dropped !== 'object' || dropped === null) return null
  const drops: Drop[] = []
  for (const [reason, said] of Object.entries(dropped).slice(0, MOST_REASONS)) {
    const [count, lastAt] = Array.isArray(said) ? (said as unknown[]) : []
    if (isDrop(reason, count, lastAt)) drops.push({ reason, count, lastAt } as Drop)
  }
  return drops.length === 0 ? null : JSON.stringify(drops)
}

const isDrop = (reason: unknown, count: unknown, lastAt: unknown): boolean =>
  typeof reason === 'string' &&
  REASON.test(reason) &&
  isCount(count, DROPPED_MAX) &&
  isCount(lastAt, LIMITS.detectedAtMaxMs)

const isCount = (value: unknown, max: number): value is number =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) <= max

/** Validates imported recorders: their numbers must have room for this many events. */
export function areRecorders(recorders: readonly Recorder[], eventCount: number): boolean {
  const isRecorder = ({ id, clientId, highest, arrived, rejected, dropped }: Recorder) =>
    RECORDER.test(id) &&
    clientId !== '' &&
    hasAtMost(clientId, LIMITS.clientIdChars) &&
    [highest, arrived, rejected].every((count) => isCount(count, NUMBER_MAX)) &&
    dropped.length <= MOST_REASONS &&
    dropped.every(({ reason, count, lastAt }) => isDrop(reason, count, lastAt))
  const arrived = recorders.reduce((sum, recorder) => sum + recorder.arrived, 0)
  const ids = new Set(recorders.map(({ id }) => id))
  return (
    recorders.length <= MOST_RECORDERS &&
    ids.size === recorders.length &&
    recorders.every(isRecorder) &&
    arrived <= eventCount
  )
}

export function toCompleteness(run: { recorders: string | null; eventCount: number }): Completeness {
  const recorders = readRecorders(run.recorders)
  const each = recorders.map(toRecorder)
  const counts = countsOf(each)
  const unnumbered = Math.max(0, run.eventCount - counts.arrived)
  const isContradiction = recorders.some(({ arrived, highest }) => arrived > highest)
  const state =
    counts.recorded > counts.arrived
      ? 'GAPS'
      : recorders.length === 0 || unnumbered > 0 || isContradiction
        ? 'UNKNOWN'
        : each.some(({ isDone }) => !isDone)
          ? 'OPEN'
          : 'COMPLETE'
  return { state, ...counts, drops: toDrops(dropsOfAll(recorders)), unnumbered, recorders: each }
}

const COUNTS = ['recorded', 'arrived', 'rejected', 'dropped', 'missing'] as const
type Counts = Pick<Completeness, (typeof COUNTS)[number]>

function countsOf(each: readonly Counts[]): Counts {
  const sums = COUNTS.map((name) => [name, each.reduce((sum, one) => sum + one[name], 0)])
  return Object.fromEntries(sums) as Counts
}

function toRecorder(recorder: Recorder): RecorderCompleteness {
  const { clientId, arrived, isDone } = recorder
  const recorded = Math.max(arrived, recordedBy(recorder))
  // If an answer was lost, an event can count both as arrived and as rejected or dropped. So these explain at most what
  // is missing.
  const rejected = Math.min(recorder.rejected, recorded - arrived)
  const dropped = Math.min(droppedBy(recorder), recorded - arrived - rejected)
  return { clientId, recorded, arrived, rejected, dropped, missing: recorded - arrived - rejected - dropped, isDone }
}

function dropsOfAll(recorders: readonly Recorder[], drops = new Map<string, Drop>()): Map<string, Drop> {
  for (const recorder of recorders) {
    if (recordedBy(recorder) <= recorder.arrived) continue
    for (const { reason, count, lastAt } of recorder.dropped) {
      const known = drops.get(reason) ?? { reason, count: 0, lastAt: 0 }
      drops.set(reason, { reason, count: known.count + count, lastAt: Math.max(known.lastAt, lastAt) })
    }
  }
  return drops
}

function toDrops(drops: ReadonlyMap<string, Drop>): Completeness['drops'] {
  return [...drops.values()].map((drop) => ({ ...drop, lastAt: isoTime(drop.lastAt) }))
}

export interface Sum extends Pick<CompletenessSum, 'key' | 'name' | 'runs' | 'newestRun'> {
  counts: Counts
  drops: Map<string, Drop>
}

interface SumPlace {
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
    /** Call this for the newest run first. Returns the number of recorders. */
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
