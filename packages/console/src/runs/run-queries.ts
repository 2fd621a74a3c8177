/** What the page of a run reads: the run, the rows of its timeline without payloads, and payloads one at a time. */
import type { Event, EventRow } from '@tacho/contract/event.ts'
import { CallError } from '@tacho/client/throwing.ts'
import { queryOptions, useQuery, useQueryClient, type QueryClient } from '@tanstack/react-query'
import { useEffect, useMemo } from 'react'
import { api, operator } from '../api.ts'

const FOLLOW_MS = 1_500
const PAGE_ROWS = 200
/** While a long run loads, the page is drawn again so often. */
const DRAW_MS = 200

export const runQuery = (environmentId: string, runId: string) =>
  queryOptions({
    queryKey: ['run', environmentId, runId],
    queryFn: () => api.readOperatorRun({ params: { environmentId, runId } }),
    refetchInterval: ({ state }) => (state.data?.status === 'RUNNING' ? FOLLOW_MS : false),
  })

interface Rows {
  /** In the order of their arrival. */
  rows: readonly EventRow[]
  /** Where the next look begins. */
  cursor: string | undefined
  isComplete: boolean
}

/** A row of the timeline with its place, from 0. */
export interface Step extends EventRow {
  index: number
  time: number
  /** Milliseconds since the step before. */
  gap: number
}

/** All steps by time; they come page by page, and go on coming while the run is running. */
export function useSteps(environmentId: string, runId: string, isRunning: boolean) {
  const cache = useQueryClient()
  const queryKey = ['steps', environmentId, runId]
  const query = useQuery({
    queryKey,
    queryFn: ({ signal }) => readRows(cache, queryKey, { environmentId, runId }, signal),
    refetchInterval: isRunning ? FOLLOW_MS : false,
    structuralSharing: false,
  })
  // The last steps may have arrived after the latest look: look once more when the run has ended.
  const { refetch } = query
  useEffect(() => {
    if (!isRunning) void refetch({ cancelRefetch: false })
  }, [isRunning, refetch])
  const steps = useMemo(() => toSteps(query.data?.rows ?? []), [query.data])
  return { steps, isPending: query.isPending, isComplete: query.data?.isComplete ?? false, error: query.error, query }
}

async function readRows(
  cache: QueryClient,
  queryKey: string[],
  params: { environmentId: string; runId: string },
  signal: AbortSignal,
): Promise<Rows> {
  const known = cache.getQueryData<Rows>(queryKey)
  const rows = [...(known?.rows ?? [])]
  let cursor = known?.cursor
  let drawnAt = 0
  for (;;) {
    const query = { order: 'arrival', limit: PAGE_ROWS, cursor } as const
    const page = await api.listEventRows({ params, query }, { signal })
    cursor = page.nextCursor ?? undefined
    // By arrival the list has no end; an empty page is the end for now.
    if (page.items.length === 0) return { rows, cursor, isComplete: true }
    rows.push(...page.items)
    const now = performance.now()
    if (now - drawnAt < DRAW_MS) continue
    drawnAt = now
    cache.setQueryData<Rows>(queryKey, { rows: [...rows], cursor, isComplete: false })
  }
}

export function toSteps(rows: readonly EventRow[]): Step[] {
  const timed = rows.map((row) => ({ ...row, time: Date.parse(row.timestamp) }))
  // Stable: events of the same time stay in the order of their arrival.
  timed.sort((a, b) => a.time - b.time)
  return timed.map((row, index) => ({ ...row, index, gap: index === 0 ? 0 : row.time - (timed[index - 1]?.time ?? 0) }))
}

export interface WholeEvent {
  event: Event
  /** The payload as it was sent, to the last digit. */
  payloadText: string
}

/** A stored event never changes. */
export const eventQuery = (environmentId: string, runId: string, eventId: string) =>
  queryOptions({
    queryKey: ['event', environmentId, runId, eventId],
    queryFn: async ({ signal }): Promise<WholeEvent> => {
      const result = await operator.readEvent({ params: { environmentId, runId, eventId } }, { signal })
      if (!result.ok) throw new CallError(result)
      return { event: result.value, payloadText: payloadIn(result.text) }
    },
    staleTime: Infinity,
    gcTime: 60_000,
  })

const PAYLOAD_KEY = '"payload":'

/** The payload is the last member, and no text can hold its key: quotes are escaped in a text. */
function payloadIn(reply: string): string {
  return reply.slice(reply.indexOf(PAYLOAD_KEY) + PAYLOAD_KEY.length, reply.lastIndexOf('}'))
}
