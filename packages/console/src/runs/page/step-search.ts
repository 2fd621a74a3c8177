/** The search on a run's page: first in labels, in the browser; then in all payloads of the run, on the server. */
import type { SnippetPart } from '@tacho/contract/runs/search.ts'
import { useQuery, useQueryClient, type QueryClient } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import { api } from '../../web/api.ts'
import type { Step } from '../queries.ts'

const TYPING_MS = 300
const PAGE_HITS = 100
/** Maximum number of hits in the list. */
const HITS_MAX = 1_000

interface Hits {
  /** Snippets of the hits, by event id. */
  snippets: ReadonlyMap<string, readonly SnippetPart[]>
  examined: number
  isDone: boolean
}

const NONE: Hits = { snippets: new Map(), examined: 0, isDone: false }

export interface FoundSteps extends Hits {
  steps: readonly Step[]
  isSearching: boolean
  error: Error | null
}

interface Searched {
  environmentId: string
  runId: string
  steps: readonly Step[]
  isRunning: boolean
}

export function useFound({ environmentId, runId, steps, isRunning }: Searched, find: string): FoundSteps {
  const cache = useQueryClient()
  const text = find.trim()
  const typed = useSettled(text)
  const key = ['run search', environmentId, runId, typed, isRunning]
  const query = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => searchAll(cache, key, { environmentId, runId, q: typed }, signal),
    enabled: typed !== '' && typed === text,
    structuralSharing: false,
    gcTime: 60_000,
  })
  const hits = (text === '' ? undefined : query.data) ?? NONE
  const matchingSteps = useMemo(() => {
    const sought = text.toLowerCase()
    if (sought === '') return steps
    return steps.filter(
      ({ label, eventType, eventId }) =>
        hits.snippets.has(eventId) || `${label}\n${eventType}`.toLowerCase().includes(sought),
    )
  }, [steps, text, hits])
  return {
    ...hits,
    steps: matchingSteps,
    isSearching: text !== '' && !hits.isDone && query.error === null,
    error: query.error,
  }
}

/** Reads page after page, and shows each when it arrives. */
async function searchAll(
  cache: QueryClient,
  key: unknown[],
  { environmentId, runId, q }: { environmentId: string; runId: string; q: string },
  signal: AbortSignal,
): Promise<Hits> {
  const snippets = new Map<string, readonly SnippetPart[]>()
  let [examined, cursor] = [0, undefined as string | undefined]
  for (;;) {
    const query = { q, limit: PAGE_HITS, cursor }
    const page = await api.searchRun({ params: { environmentId, runId }, query }, { signal })
    for (const { event, snippet } of page.items) snippets.set(event.eventId, snippet)
    examined += page.examined
    cursor = page.nextCursor ?? undefined
    if (cursor === undefined || snippets.size >= HITS_MAX) return { snippets, examined, isDone: true }
    cache.setQueryData<Hits>(key, { snippets: new Map(snippets), examined, isDone: false })
  }
}

/** The text, once a person has stopped typing. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), TYPING_MS)
    return () => clearTimeout(timer)
  }, [text])
  return settled
}
