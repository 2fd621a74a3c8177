/** Queries of a run's page: the run, its timeline without payloads, and single payloads. */
import type { EventRow } from '@tacho/contract/record/event.ts'
import type { OperatorEvent } from '@tacho/contract/runs/operator-run.ts'
import { CallError } from '@tacho/client/throwing.ts'
import { queryOptions, useQuery, useQueryClient, type QueryClient } from '@tanstack/react-query'
import { useDeferredValue, useEffect } from 'react'
import { api, operator } from '../web/api.ts'

const FOLLOW_MS = 1_500
const PAGE_ROWS = 200

export const runQuery = (environmentId: string, runId: string) =>
  queryOptions({
    queryKey: ['run', environmentId, runId],
    queryFn: () => api.readOperatorRun({ params: { environmentId, runId } }),
    refetchInterval: ({ state }) => (state.data?.status === 'RUNNING' ? FOLLOW_MS : false),
  })

interface Loaded {
  runId: string
  steps: readonly Step[]
  /** Cursor of the next query. */
  cursor: string | undefined
  isComplete: boolean
}

const NOTHING: Pick<Loaded, 'steps' | 'isComplete'> = { steps: [], isComplete: false }

/** A row of the timeline with its index, from 0. */
export interface Step extends EventRow {
  index: number
  time: number
  /** Milliseconds since the previous step. */
  gap: number
}

/** All steps, sorted by time. They arrive page by page; new ones are added while the run is running. */
export function useSteps(environmentId: string, runId: string, isRunning: boolean) {
  const cache = useQueryClient()
  const queryKey = ['steps', environmentId, runId]
  const query = useQuery({
    queryKey,
    queryFn: ({ signal }) => readSteps(cache, queryKey, { environmentId, runId }, signal),
    refetchInterval: isRunning ? FOLLOW_MS : false,
    structuralSharing: false,
  })
  // Read once more when the run has ended, because the last steps may have arrived after the previous query.
  const { refetch } = query
  useEffect(() => {
    if (!isRunning) void refetch({ cancelRefetch: false })
  }, [isRunning, refetch])
  // Rendering thousands of steps takes longer than a frame, so let keys and scrolling go first.
  const drawn = useDeferredValue(query.data)
  const { steps, isComplete } = (drawn?.runId === runId ? drawn : query.data) ?? NOTHING
  return { steps, isPending: query.isPending, isComplete, error: query.error, query }
}

async function readSteps(
  cache: QueryClient,
  queryKey: string[],
  params: { environmentId: string; runId: string },
  signal: AbortSignal,
): Promise<Loaded> {
  let { steps, cursor } = cache.getQueryData<Loaded>(queryKey) ?? { steps: [], cursor: undefined }
  let drawn = steps.length
  for (;;) {
    const query = { order: 'arrival', limit: PAGE_ROWS, cursor } as const
    const page = await api.listEventRows({ params, query }, { signal })
    cursor = page.nextCursor ?? undefined
    // Sorted by arrival, the list has no end. An empty page means that nothing more has arrived yet.
    if (page.items.length === 0) return { runId: params.runId, steps, cursor, isComplete: true }
    steps = withRows(steps, page.items)
    // Render again only when the number of steps has doubled, because rendering takes longer for longer runs.
    if (steps.length < 2 * drawn) continue
    drawn = steps.length
    cache.setQueryData<Loaded>(queryKey, { runId: params.runId, steps, cursor, isComplete: false })
  }
}

/**
 * Merges rows that arrived later into the steps, sorted by time. Steps before the first new row stay the same objects.
 */
export function withRows(steps: readonly Step[], rows: readonly EventRow[]): Step[] {
  const added = rows.map((row) => ({ ...row, time: Date.parse(row.timestamp), index: 0, gap: 0 }))
  const first = Math.min(...added.map(({ time }) => time))
  const keptSteps = steps.findLastIndex(({ time }) => time <= first) + 1
  // A stable sort keeps the order of arrival for equal times.
  const moved = [...steps.slice(keptSteps).map((step) => ({ ...step })), ...added].sort((a, b) => a.time - b.time)
  const all = [...steps.slice(0, keptSteps), ...moved]
  for (const [place, step] of moved.entries()) {
    step.index = keptSteps + place
    step.gap = step.time - (all[step.index - 1]?.time ?? step.time)
  }
  return all
}

export interface WholeEvent {
  event: OperatorEvent
  /** The payload's text as it was sent, with every digit. */
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

/** The payload is the last member. Its key cannot occur inside a text, where quotes are escaped. */
function payloadIn(reply: string): string {
  return reply.slice(reply.indexOf(PAYLOAD_KEY) + PAYLOAD_KEY.length, reply.lastIndexOf('}'))
}
