/** `tacho runs list`: prints each page when it arrives. */
import { LIMITS } from '@tacho/contract/limits.ts'
import type { OperatorRun } from '@tacho/contract/operator/run.ts'
import { stalledMs } from '@tacho/contract/stalled.ts'
import type { Input, OperatorClient } from '../calls/operator-client.ts'
import { printJsonItems, printLine, spokenNumber, tableWriter, type Column } from '../terminal/output.ts'
import { spokenDuration } from '../terminal/time-text.ts'

export interface RunsWanted {
  query: NonNullable<Input<'listOperatorRuns'>['query']>
  /** Internal id, external id or name. */
  agent: string | undefined
  /** Infinity for all. */
  limit: number
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

const COLUMNS: Column[] = [
  ...['STARTED', 'STATUS', 'RUN', 'AGENT', 'SESSION'].map((title): Column => ({ title })),
  ...['LASTED', 'EVENTS', 'TOKENS', 'COST'].map((title): Column => ({ title, align: 'right' })),
]

export async function listRuns(
  client: OperatorClient,
  environmentId: string,
  wanted: RunsWanted,
  asJson: boolean,
): Promise<void> {
  const found = { hasMore: false }
  const chunks = runChunks(client, environmentId, wanted, found)
  if (asJson) {
    const items = (async function* () {
      for await (const runs of chunks) for (const run of runs) yield JSON.stringify(run)
    })()
    return printJsonItems({}, 'items', items, () => found)
  }
  const print = tableWriter(COLUMNS)
  let count = 0
  for await (const runs of chunks) {
    if (runs.length > 0) print(runs.map(runCells))
    count += runs.length
  }
  if (count === 0) printLine('No matching runs.')
  // On stderr: scripts may count or cut the lines of stdout.
  if (found.hasMore) process.stderr.write('There are more: use --limit or --all.\n')
}

/** The matching runs, page by page. Sets `found.hasMore` if it stops before the end. */
async function* runChunks(
  client: OperatorClient,
  environmentId: string,
  { query, agent, limit }: RunsWanted,
  found: { hasMore: boolean },
): AsyncGenerator<OperatorRun[]> {
  const ofAgent = agent === undefined ? {} : UUID.test(agent) ? { agentId: agent } : { agent }
  const filter = { ...query, ...ofAgent, limit: Math.min(limit, LIMITS.operatorPageMax) }
  let left = limit
  let cursor: string | null = null
  do {
    const page: { items: OperatorRun[]; nextCursor: string | null } = await client.listOperatorRuns({
      params: { environmentId },
      query: cursor === null ? filter : { ...filter, cursor },
    })
    yield page.items.slice(0, left)
    cursor = page.nextCursor
    found.hasMore = page.items.length > left || cursor !== null
    left -= page.items.length
  } while (cursor !== null && left > 0)
}

function runCells(run: OperatorRun): string[] {
  const lasted = Date.parse(run.endedAt ?? run.lastEventAt) - Date.parse(run.startedAt)
  return [
    run.startedAt,
    statusCell(run),
    run.runId,
    run.agent.name,
    run.sessionId ?? '',
    spokenDuration(Math.max(0, lasted)),
    spokenNumber(run.eventCount),
    spokenNumber(run.usage.totalTokens),
    spokenNumber(run.usage.cost),
  ]
}

function statusCell(run: OperatorRun): string {
  const status = stalledMs(run, Date.now()) === null ? run.status : `${run.status} (stalled)`
  return run.pinnedAt === null ? status : `${status} (pinned)`
}

/** One run on one line. */
export function runLine(run: OperatorRun): string {
  return `${run.startedAt}  ${run.status.padEnd(9)}  ${run.runId}  ${run.agent.name}`
}
