/** `tacho runs show`: a run and its timeline. */
import { eachItem } from '@tacho/client/items.ts'
import type { EventRow } from '@tacho/contract/event.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import type { OperatorRun } from '@tacho/contract/operator/run.ts'
import { stalledMs } from '@tacho/contract/stalled.ts'
import { indented, memberText } from '@tacho/contract/json-text.ts'
import { known } from '../calls/known.ts'
import { answered, type OperatorClient } from '../calls/operator-client.ts'
import { counted, printable, printJsonItems, printLine, spokenNumber, strong } from '../terminal/output.ts'
import { spokenDuration } from '../terminal/time-text.ts'
import { eventLine } from './timeline.ts'

export interface RunPlace {
  environmentId: string
  runId: string
}

/** Payloads are read one by one; this many at a time. */
const READS_AT_ONCE = 8

export async function showRun(
  client: OperatorClient,
  place: RunPlace,
  options: { payloads?: true; type?: string; search?: string; json?: true },
): Promise<void> {
  const run = await known('run', place.runId, client.readOperatorRun({ params: place }))
  const rows = eachItem(client.listEventRows, {
    params: place,
    query: {
      limit: LIMITS.eventsPageMax,
      ...(options.type === undefined ? {} : { eventType: options.type }),
      ...(options.search === undefined ? {} : { q: options.search }),
    },
  })
  if (options.json) {
    const items = options.payloads ? eventTexts(client, place, rows) : rowTexts(rows)
    return printJsonItems({ run }, 'events', items)
  }
  for (const line of runLines(run)) printLine(line)
  const startedAt = Date.parse(run.startedAt)
  if (!options.payloads) {
    for await (const row of rows) printLine(eventLine(row, startedAt))
    return
  }
  for await (const { row, text } of withTexts(client, place, rows)) {
    printLine(eventLine(row, startedAt))
    for (const line of indented(memberText(text, 'payload') ?? '{}').split('\n')) printLine(`    ${printable(line)}`)
  }
}

async function* rowTexts(rows: AsyncIterable<EventRow>): AsyncGenerator<string> {
  for await (const row of rows) yield JSON.stringify(row)
}

async function* eventTexts(
  client: OperatorClient,
  place: RunPlace,
  rows: AsyncIterable<EventRow>,
): AsyncGenerator<string> {
  for await (const { text } of withTexts(client, place, rows)) yield text
}

/** Each event with the JSON text of its full read shape, in row order. */
async function* withTexts(
  client: OperatorClient,
  { environmentId, runId }: RunPlace,
  rows: AsyncIterable<EventRow>,
): AsyncGenerator<{ row: EventRow; text: string }> {
  const read = async (row: EventRow): Promise<{ row: EventRow; text: string }> => {
    const params = { environmentId, runId, eventId: row.eventId }
    const { text } = answered(client.url, await client.whole.readEvent({ params }))
    return { row, text }
  }
  let waiting: EventRow[] = []
  for await (const row of rows) {
    waiting.push(row)
    if (waiting.length < READS_AT_ONCE) continue
    yield* await Promise.all(waiting.map(read))
    waiting = []
  }
  yield* await Promise.all(waiting.map(read))
}

function runLines(run: OperatorRun): string[] {
  const { usage } = run
  const silence = stalledMs(run, Date.now())
  const running = silence === null ? 'still running' : `stalled: no event for ${spokenDuration(silence)}`
  const ended = run.endedAt === null ? running : `ended ${run.endedAt}`
  const lasted = Math.max(0, Date.parse(run.endedAt ?? run.lastEventAt) - Date.parse(run.startedAt))
  const tokens = `${spokenNumber(usage.promptTokens)} prompt + ${spokenNumber(usage.completionTokens)} completion`
  return [
    strong(`${run.status}  ${printable(run.runId)}`),
    `Agent    ${printable(run.agent.name)}${run.agentId === null ? '' : ` (${printable(run.agentId)})`}`,
    ...(run.sessionId === null ? [] : [`Session  ${printable(run.sessionId)}`]),
    `Time     started ${run.startedAt}, ${ended} (${spokenDuration(lasted)})`,
    `Usage    ${spokenNumber(usage.totalTokens)} tokens (${tokens}), cost ${spokenNumber(usage.cost)}${estimateText(run)}`,
    `Events   ${counted(run.eventCount, 'event')}${differing(run.differingRetries)}`,
    ...(run.payloadsRemoved === 0
      ? []
      : [`Payloads of ${counted(run.payloadsRemoved, 'event')} were removed by retention`]),
    ...(run.pinnedAt === null ? [] : [`Pinned   since ${run.pinnedAt}`]),
    '',
  ]
}

function differing(count: number): string {
  if (count === 0) return ''
  return `; ${counted(count, 'retried event')} had different content; the first version was kept`
}

function estimateText({ estimatedCost, priceTable, unpricedCalls }: OperatorRun): string {
  const estimate = estimatedCost === null ? '' : `, estimated ${spokenNumber(estimatedCost)} more by ${priceTable}`
  return unpricedCalls === 0 ? estimate : `${estimate}, ${counted(unpricedCalls, 'call')} without a price`
}
