/** Finds the differences between paired steps. It reads payloads only for the first pairs of calls. */
import { isObject, numberAt, type Json } from '@tacho/contract/record/payload-reader.ts'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useMemo } from 'react'
import { eventQuery, type Step } from '../queries.ts'
import { duration, LEAST_MONEY, money } from '../../web/text/format.ts'
import type { Pair } from './use-alignment.ts'

/** Number of pairs whose payloads are read and compared. Of later pairs, only payload sizes are compared. */
const PAIRS_READ = 75
/** A smaller difference in time is noise. */
const LATER_MS = 100

type Both = { a: Step; b: Step }
const isBoth = (pair: Pair): pair is Both => pair.a !== null && pair.b !== null

interface ComparedRun {
  environmentId: string
  runId: string
}

/** The differences of each pair, in words, by the first run's event id. */
export function useDifferences(a: ComparedRun, b: ComparedRun, pairs: readonly Pair[]) {
  const cache = useQueryClient()
  const looked = useMemo(() => pairs.filter(isBoth).slice(0, PAIRS_READ), [pairs])
  const { data } = useQuery({
    queryKey: ['differences', a, b, looked.length, looked.at(-1)?.a.eventId],
    queryFn: async () => {
      const read = async ({ environmentId, runId }: ComparedRun, { eventId }: Step): Promise<Json> => {
        const { event } = await cache.fetchQuery(eventQuery(environmentId, runId, eventId))
        return isObject(event.payload) ? event.payload : {}
      }
      const words = await Promise.all(
        looked.map(async (pair): Promise<[string, string[]]> => {
          const [one, other] = await Promise.all([read(a, pair.a), read(b, pair.b)])
          return [pair.a.eventId, differences(one, other)]
        }),
      )
      return new Map(words)
    },
    structuralSharing: false,
  })
  return data
}

const PARTS = [
  ['input', ['input', 'messages', 'text']],
  ['output', ['output', 'content']],
  ['error', ['error', 'message']],
] as const

/** The differing parts of two payloads, in words. */
export function differences(a: Json, b: Json): string[] {
  const words = PARTS.flatMap(([word, keys]) => (keys.every((key) => isSame(a[key], b[key])) ? [] : [`≠ ${word}`]))
  const dearer = (numberAt(b, 'cost') ?? 0) - (numberAt(a, 'cost') ?? 0)
  return Math.abs(dearer) < LEAST_MONEY
    ? words
    : [...words, `the ${whichRun(dearer)} cost ${money(Math.abs(dearer))} more`]
}

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)
/** The run with the larger value, in words: a sign could mean either run, because the mark is below both columns. */
const whichRun = (difference: number) => (difference > 0 ? 'second' : 'first')

/** Maximum number of decisions of each run whose payloads are read for policy versions. */
const DECISIONS_READ = 20

/** The versions of the policies that decided, such as `refund-ceiling 3`, by name. Undefined: not read yet. */
export function usePolicyVersions({ environmentId, runId }: ComparedRun, steps: readonly Step[], areComplete: boolean) {
  const cache = useQueryClient()
  const { data } = useQuery({
    queryKey: ['policy versions', environmentId, runId, steps.length],
    enabled: areComplete,
    queryFn: async () => {
      const decisions = steps.filter(({ eventType }) => eventType === 'POLICY_DECISION').slice(0, DECISIONS_READ)
      const events = await Promise.all(
        decisions.map(({ eventId }) => cache.fetchQuery(eventQuery(environmentId, runId, eventId))),
      )
      const versions = events.flatMap(({ event: { payload } }) => {
        const named = isObject(payload) ? payload['policyVersions'] : null
        return isObject(named) ? Object.entries(named).map(([id, version]) => `${id} ${String(version)}`) : []
      })
      return [...new Set(versions)].sort()
    },
  })
  return data
}

/** The differences of a pair, in words. `read`: those of the payloads; undefined if they were not read. */
export function markOf({ a, b }: Pair, read: readonly string[] | undefined): string {
  if (a === null) return 'only in the second'
  if (b === null) return 'only in the first'
  const isOther = a.payloadBytes !== b.payloadBytes
  const [took, tookLater] = a.latency === null || b.latency === null ? [a.gap, b.gap] : [a.latency, b.latency]
  const later = tookLater - took
  return [
    ...(read ?? (isOther ? ['≠ size'] : [])),
    ...(Math.abs(later) < LATER_MS ? [] : [`the ${whichRun(later)} took ${duration(Math.abs(later))} longer`]),
  ].join(' · ')
}
