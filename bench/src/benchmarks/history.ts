/** A store with the runs of the last weeks. */
import type { Child } from '../child.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import type { IngestLoad } from '../load/ingest-load.ts'
import type { Paced } from '../load/pace.ts'
import { longRunsOf, newPlot, runIdOf, type Plot } from '../load/shapes.ts'
import type { Server } from '../server.ts'

const DAY_MS = 86_400_000
const DAYS = 20
const FILL_CONNECTIONS = 8
const TIMELINES = 500

export interface History {
  plot: Plot
  requests: number
}

/** Records the events of the last weeks through the server, in order. */
export async function fillHistory(load: Child<IngestLoad, Paced>, server: Server, events: number): Promise<History> {
  const requests = events / BATCH_EVENTS
  const from = Date.now() - DAYS * DAY_MS
  const plot = { ...newPlot('history'), history: { from, perRequestMs: ((DAYS - 1) * DAY_MS) / requests } }
  await load.call({ url: server.url, apiKey: server.apiKey, plot, connections: FILL_CONNECTIONS, requests })
  return { plot, requests }
}

interface RunsPage {
  items: { agent: { id: string } }[]
  nextCursor: string
}

/** The newest runs, the failed ones, those of one agent, and a page further back. */
export async function listPaths({ url, apiKey }: Server): Promise<string[]> {
  const reply = await fetch(`${url}/openapi/v1/runs?limit=100`, { headers: { 'x-api-key': apiKey } })
  const { items, nextCursor } = (await reply.json()) as RunsPage
  return [
    '/runs',
    '/runs?status=FAILED',
    `/runs?agentId=${items[0]?.agent.id}`,
    `/runs?cursor=${encodeURIComponent(nextCursor)}`,
  ]
}

/** Timelines of runs with a hundred events, from all over the history. */
export function timelinePaths({ plot, requests }: History): { runIds: string[]; paths: string[] } {
  const runs = longRunsOf(requests)
  const step = Math.max(1, Math.floor(runs.length / TIMELINES))
  const runIds = runs.filter((_, index) => index % step === 0).map((run) => runIdOf(plot, run))
  return { runIds, paths: runIds.map((runId) => `/runs/${runId}/events?limit=${BATCH_EVENTS}`) }
}
