/** `tacho runs list`: prints each page when it arrives. */
import { byOutcome, whyEnded, whyLook } from '@tacho/contract/issues/failure.ts'
import { duration } from '@tacho/contract/engine/format.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { runScoreText } from '@tacho/contract/runs/run-text.ts'
import { runLength, stalledMs } from '@tacho/contract/runs/run-activity.ts'
import type { Input, OperatorClient } from '../engine/operator-client.ts'
import {
  printable,
  printEmpty,
  printJsonItems,
  printMore,
  spokenCost,
  spokenNumber,
  spokenUsage,
  spokenTime,
  tableWriter,
  type Column,
} from '../engine/output.ts'
import { toned, toneOf } from '../engine/display.ts'

export interface RunsWanted {
  query: NonNullable<Input<'listOperatorRuns'>['query']>
  /** Internal id, external id or name. */
  agent: string | undefined
  /** Infinity for all. */
  limit: number
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

const COLUMNS: Column[] = [
  { title: 'STARTED', as: 'time' },
  { title: 'STATUS', as: 'word' },
  { title: 'WHY', as: 'text' },
  { title: 'RUN' },
  { title: 'AGENT' },
  { title: 'LASTED', align: 'right', isOptional: true },
  { title: 'COST', align: 'right', isOptional: true },
  { title: 'SCORES', isOptional: true },
  { title: 'SESSION', isOptional: true },
  { title: 'EVENTS', align: 'right', isOptional: true },
  { title: 'TOKENS', align: 'right', isOptional: true },
]

const FAILURES: Column = { title: 'ERRORS', align: 'right' }

export async function listRuns(
  client: OperatorClient,
  environmentId: string,
  wanted: RunsWanted,
  asJson: boolean,
): Promise<void> {
  const pageState = { hasMore: false }
  const chunks = runChunks(client, environmentId, wanted, pageState)
  if (asJson) {
    const items = (async function* () {
      for await (const runs of chunks) for (const run of runs) yield JSON.stringify(run)
    })()
    return printJsonItems({}, 'items', items, () => pageState)
  }
  const isByFailures = wanted.query.sort === 'failures'
  const print = tableWriter(isByFailures ? COLUMNS.toSpliced(3, 0, FAILURES) : COLUMNS)
  const now = Date.now()
  let count = 0
  for await (const runs of chunks) {
    if (runs.length > 0) print(runs.map((run) => runCells(run, now, isByFailures)))
    count += runs.length
  }
  if (count === 0) printEmpty('No matching runs. `tacho demo` records some to look at, in an environment of its own.')
  printMore(pageState.hasMore)
}

/** Yields the matching runs page by page. Sets `pageState.hasMore` if it stops before the end. */
export async function* runChunks(
  client: OperatorClient,
  environmentId: string,
  { query, agent, limit }: RunsWanted,
  pageState: { hasMore: boolean },
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
    pageState.hasMore = page.items.length > left || cursor !== null
    left -= page.items.length
  } while (cursor !== null && left > 0)
}

function runCells(run: OperatorRun, now: number, withFailures: boolean): string[] {
  return [
    run.startedAt,
    [shownStatus(run, now), ...notesOf(run)].join(' '),
    whyLook(run, now) ?? (run.status === 'FAILED' ? byOutcome(run) : ''),
    ...(withFailures ? [spokenNumber(run.errorCount)] : []),
    run.runId,
    run.agent.name,
    duration(runLength(run, now)),
    spokenCost(run),
    scoresText(run),
    run.sessionId ?? '',
    spokenNumber(run.eventCount),
    spokenUsage(run.usage.totalTokens),
  ]
}

const scoresText = ({ scores }: OperatorRun): string =>
  scores.map((score) => `${score.name} ${runScoreText(score)}`).join(', ')

function notesOf({ pinnedAt, completeness: { state, recorded, arrived } }: OperatorRun): string[] {
  const missing = state === 'GAPS' ? [`(${spokenNumber(recorded - arrived)} missing)`] : []
  return pinnedAt === null ? missing : ['(pinned)', ...missing]
}

/** A run on one line. */
export function runLine(run: OperatorRun): string {
  const status = shownStatus(run, Date.now())
  const time = spokenTime(run.startedAt)
  const why = whyEnded(run)
  const line = `${time}  ${toned(toneOf(status), status.padEnd(9))}  ${printable(run.runId)}  ${printable(run.agent.name)}`
  return why === null ? line : `${line}  ${printable(why)}`
}

/** The run's status; STALLED instead of RUNNING, as in the console. */
export function shownStatus(run: OperatorRun, now: number): string {
  if (run.closedByRuleAt !== null) return `${run.status} (rule)`
  return stalledMs(run, now) === null ? run.status : 'STALLED'
}
