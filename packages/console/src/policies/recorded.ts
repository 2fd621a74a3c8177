/** What agents recorded in the environment, for completion: names of tools, and the input of a tool's newest call. */
import { isObject, textAt, type Json } from '@tacho/contract/record/payload-reader.ts'
import type { QueryClient } from '@tanstack/react-query'
import { api } from '../web/api.ts'
import { eventQuery } from '../runs/queries.ts'

const DAYS = 30
const TOOLS = 200
const CALLS_READ = 20
const STALE_MS = 60_000

export interface Recorded {
  tools(): Promise<readonly string[]>
  /** Null: no call of it was recorded with an input. */
  inputOf(tool: string): Promise<Json | null>
}

export function recordedIn(cache: QueryClient, environmentId: string): Recorded {
  return {
    // Completion is help: without an answer, there is less of it.
    tools: () =>
      cache
        .fetchQuery({
          queryKey: ['recorded tools', environmentId],
          queryFn: () => readTools(environmentId),
          staleTime: STALE_MS,
        })
        .catch(() => []),
    inputOf: (tool) =>
      cache
        .fetchQuery({
          queryKey: ['recorded input', environmentId, tool],
          queryFn: () => readInput(cache, environmentId, tool),
          staleTime: STALE_MS,
        })
        .catch(() => null),
  }
}

async function readTools(environmentId: string): Promise<string[]> {
  const now = Date.now()
  const window = { from: new Date(now - DAYS * 86_400_000).toISOString(), to: new Date(now).toISOString() }
  const query = { ...window, by: 'tool', step: 'window', limit: TOOLS } as const
  const { items } = await api.readUsagePoints({ params: { environmentId }, query })
  return items.flatMap(({ name }) => (name ? [name] : []))
}

async function readInput(cache: QueryClient, environmentId: string, tool: string): Promise<Json | null> {
  const { items } = await api.listOperatorRuns({ params: { environmentId }, query: { tool, limit: 1 } })
  const [run] = items
  if (!run) return null
  const query = { eventType: 'TOOL_CALL', limit: CALLS_READ } as const
  const rows = await api.listEventRows({ params: { environmentId, runId: run.runId }, query })
  // Most clients name the tool in the label.
  const likely = rows.items.toSorted((a, b) => Number(b.label.includes(tool)) - Number(a.label.includes(tool)))
  for (const { eventId } of likely) {
    const { event } = await cache.fetchQuery(eventQuery(environmentId, run.runId, eventId))
    const payload = isObject(event.payload) ? event.payload : {}
    if (textAt(payload, 'toolName') === tool && isObject(payload['input'])) return payload['input']
  }
  return null
}
