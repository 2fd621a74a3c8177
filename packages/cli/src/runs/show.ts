/** `tacho runs show`: a run and its timeline. */
import { eachItem, taken } from '@tacho/client/items.ts'
import { completenessText } from '@tacho/contract/record/completeness-text.ts'
import type { EventRow } from '@tacho/contract/record/event.ts'
import {
  cancellationOf,
  causeLines,
  failureLine,
  failureOf,
  SILENT_CAUSES,
  whyEnded,
  type Failure,
  type ToldEvent,
} from '@tacho/contract/issues/failure.ts'
import { duration } from '@tacho/contract/engine/format.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { neverEnded, runLength, stalledMs } from '@tacho/contract/runs/run-activity.ts'
import { ownFrame } from '@tacho/contract/issues/stack-frame.ts'
import type { OperatorApproval } from '@tacho/contract/approvals/operator-approval.ts'
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { runScoreText, tokensText } from '@tacho/contract/runs/run-text.ts'
import { indented, memberText } from '@tacho/contract/record/json-text.ts'
import { known } from '../engine/find-by-id.ts'
import { answered, type OperatorClient } from '../engine/operator-client.ts'
import { currentLook, toned, tonedWord } from '../engine/display.ts'
import {
  counted,
  printable,
  printEmpty,
  printJsonItems,
  printLine,
  spokenCost,
  spokenMoney,
  spokenNumber,
  spokenTime,
  strong,
} from '../engine/output.ts'
import { paged } from '../engine/pager.ts'
import { storyLines } from './step-story.ts'
import { isFailed, stepHead, stepLine, type Timeline } from './step-line.ts'
import { shownStatus } from './list.ts'

/** A run, and the ids of its environment and itself as the server accepts them. */
export interface RunPlace {
  environmentId: string
  runId: string
}

export interface ShowOptions {
  full?: true
  story?: true
  failed?: true
  stack?: true
  tail?: number
  type?: string
  search?: string
  grep?: string
  json?: true
}

/** Payloads are read one by one, with this many requests at once. */
const READS_AT_ONCE = 16
/** Maximum number of tools to name for calls that never ended. */
const TOOLS_NAMED = 3
/** Payload bytes of an event without one: `{}`. */
const EMPTY_BYTES = 2

export async function showRun(client: OperatorClient, runPlace: RunPlace, options: ShowOptions): Promise<void> {
  const { environmentId } = runPlace
  const read = (runId: string) => client.readOperatorRun({ params: { environmentId, runId } })
  const run = await known('run', runPlace.runId, { client, environmentId }, read)
  const place = { environmentId, runId: run.id }
  if (options.stack) return printStack(client, place, run)
  const rows = await chosenRows(client, place, options)
  const lost = await neverEndedOf(client, place, run)
  if (options.json) {
    const isWhole = options.full === true || options.failed === true
    const items = isWhole
      ? eventTexts(stepsOf(client, place, rows, { ...options, full: true, neverEnded: lost }))
      : rowTexts(rows)
    return printJsonItems({ run }, 'events', items)
  }
  await paged(async (print) => {
    const currentStyle = currentLook()
    const isStory = options.story === true
    const timeline = { startedAt: Date.parse(run.startedAt), hasCost: run.usage.cost > 0, neverEnded: lost, isStory }
    const approvals = isStory ? await approvalsOf(client, place) : NO_APPROVALS
    const failureLines = await toldFailure(client, place, run)
    for (const line of [
      ...runLines(run, { told: failureLines, lost }, currentStyle.now),
      ...stepHead(timeline, currentStyle),
    ])
      await print(line)
    let shown = 0
    for await (const { row, payload, text } of stepsOf(client, place, rows, { ...options, neverEnded: lost })) {
      if (!(await print(stepLine(row, payload, timeline, currentStyle)))) return
      shown += 1
      if (options.story)
        for (const line of storyLines(row.eventType, payload, approvals, currentStyle.now)) await print(line)
      if (options.full) for (const line of payloadLines(text)) await print(line)
    }
    if (shown === 0) printEmpty(`No steps match. \`tacho runs show ${run.runId}\` shows all.`)
  })
}

const NO_APPROVALS: ReadonlyMap<string, OperatorApproval> = new Map()

async function approvalsOf(client: OperatorClient, params: RunPlace): Promise<typeof NO_APPROVALS> {
  const { approvals } = await client.listRunApprovals({ params })
  return new Map(approvals.map((approval) => [approval.id, approval]))
}

async function chosenRows(client: OperatorClient, place: RunPlace, options: ShowOptions) {
  const { grep, tail } = options
  if (grep !== undefined) return foundRows(client, place, grep)
  return tail === undefined ? rowsOf(client, place, options) : lastRows(client, place, options)
}

/** Rows of events that contain the text, including those with it in the payload. */
async function* foundRows(client: OperatorClient, params: RunPlace, grep: string): AsyncGenerator<EventRow> {
  const query = { q: grep, limit: LIMITS.searchPageMax }
  for await (const { event } of eachItem(client.searchRun, { params, query })) yield event
}

function rowsOf(client: OperatorClient, place: RunPlace, { type, search }: ShowOptions): AsyncIterable<EventRow> {
  return eachItem(client.listEventRows, { params: place, query: rowsQuery(type, search) })
}

/** The last rows, in order of time. */
async function lastRows(client: OperatorClient, place: RunPlace, { type, search, tail = 0 }: ShowOptions) {
  const query = { ...rowsQuery(type, search), order: 'latest' as const, limit: Math.min(tail, LIMITS.eventsPageMax) }
  const { items } = await taken(eachItem(client.listEventRows, { params: place, query }), tail)
  return items.reverse()
}

function rowsQuery(type: string | undefined, search: string | undefined) {
  return {
    limit: LIMITS.eventsPageMax,
    ...(type === undefined ? {} : { eventType: type }),
    ...(search === undefined ? {} : { q: search }),
  }
}

/**
 * Tools of calls that never ended, by the event id of their start. Reads the starts and ends of all tools, because a
 * filter may hide the end of a call.
 */
async function neverEndedOf(
  client: OperatorClient,
  place: RunPlace,
  run: OperatorRun,
): Promise<ReadonlyMap<string, string>> {
  const rows: EventRow[] = []
  for (const type of ['TOOL_START', 'TOOL_CALL']) {
    for await (const row of rowsOf(client, place, { type })) rows.push(row)
    if (rows.length === 0) break
  }
  const ids = neverEnded(rows, run, currentLook().now)
  return new Map(rows.flatMap(({ eventId, label }) => (ids.has(eventId) ? [[eventId, label] as const] : [])))
}

interface Step {
  row: EventRow
  /** JSON text of the event in its full read shape. */
  text: string
  payload: unknown
}

export async function* stepsOf(
  client: OperatorClient,
  place: RunPlace,
  rows: AsyncIterable<EventRow> | Iterable<EventRow>,
  { failed, full, ...timeline }: ShowOptions & Pick<Timeline, 'neverEnded'>,
): AsyncGenerator<Step> {
  for await (const { row, text } of withTexts(client, place, rows, full === true)) {
    const payload: unknown = text === '' ? {} : JSON.parse(memberText(text, 'payload') ?? '{}')
    if (!failed || isFailed(row, payload, timeline)) yield { row, text, payload }
  }
}

/** Every event of a run with its payload, in the order of its timeline. */
export async function* eventsOf(client: OperatorClient, place: RunPlace): AsyncGenerator<unknown> {
  for await (const { text } of withTexts(client, place, rowsOf(client, place, {}), true)) yield JSON.parse(text)
}

function payloadLines(text: string): string[] {
  return indented(memberText(text, 'payload') ?? '{}')
    .split('\n')
    .map((line) => `    ${printable(line)}`)
}

async function* rowTexts(rows: AsyncIterable<EventRow> | Iterable<EventRow>): AsyncGenerator<string> {
  for await (const row of rows) yield JSON.stringify(row)
}

async function* eventTexts(steps: AsyncIterable<Step>): AsyncGenerator<string> {
  for await (const { text } of steps) yield text
}

/**
 * Yields rows with the JSON text of their events, in the same order. The text is empty for an event without a payload.
 */
async function* withTexts(
  client: OperatorClient,
  { environmentId, runId }: RunPlace,
  rows: AsyncIterable<EventRow> | Iterable<EventRow>,
  withEmpty: boolean,
): AsyncGenerator<{ row: EventRow; text: string }> {
  const read = async (row: EventRow): Promise<{ row: EventRow; text: string }> => {
    if (!withEmpty && row.payloadBytes <= EMPTY_BYTES) return { row, text: '' }
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

/** Facts about a run's end from its events. */
interface RunEnd {
  told: Failure | null
  lost: ReadonlyMap<string, string>
}

function runLines(run: OperatorRun, end: RunEnd, now: number): string[] {
  const { usage, errorCount } = run
  const silence = stalledMs(run, now)
  const status = shownStatus(run, now)
  const length = duration(runLength(run, now))
  const isWaiting = run.activity === 'WAITING_FOR_APPROVAL'
  const last = `last event ${spokenTime(run.lastEventAt)}`
  const lasting = isWaiting ? `waits for a person after ${length}` : `still running after ${length}, ${last}`
  const running = silence === null ? lasting : `no event for ${duration(silence)}: stalled`
  const ended = run.endedAt === null ? running : `ended after ${length}`
  const tokens = `${spokenNumber(usage.promptTokens)} prompt + ${spokenNumber(usage.completionTokens)} completion`
  const metadata = Object.entries(run.metadata).map(([key, value]) => printable(`${key}=${value}`))
  const errors = errorCount ? `, ${toned('red', counted(errorCount, 'error'))}` : ''
  return [
    `${tonedWord(status)}  ${strong(printable(run.runId))}`,
    ...whyLines(run, end),
    `Agent    ${printable(run.agent.name)}${run.agentId === null ? '' : ` (${printable(run.agentId)})`}`,
    ...(run.sessionId === null ? [] : [`Session  ${printable(run.sessionId)}`]),
    ...(run.userId === null ? [] : [`User     ${printable(run.userId)}`]),
    ...(run.tags.length === 0 ? [] : [`Tags     ${run.tags.map(printable).join(', ')}`]),
    ...(metadata.length === 0 ? [] : [`Metadata ${metadata.join(', ')}`]),
    `Time     started ${spokenTime(run.startedAt)}, ${ended}`,
    `Usage    ${tokensText(usage.totalTokens, spokenNumber)}${usage.totalTokens === 0 ? '' : ` (${tokens})`}, cost ${spokenCost(run)}${costNote(run)}`,
    `Events   ${counted(run.eventCount, 'event')}${errors}${differing(run.differingRetries)}`,
    arrivedLine(run),
    ...(run.scores.length === 0
      ? []
      : [`Scores   ${run.scores.map((score) => printable(`${score.name} ${runScoreText(score)}`)).join(', ')}`]),
    ...(run.payloadsRemoved === 0
      ? []
      : [`Payloads of ${counted(run.payloadsRemoved, 'event')} were removed by retention`]),
    ...(run.pinnedAt === null ? [] : [`Pinned   ${spokenTime(run.pinnedAt)}`]),
    ...(run.closedByRuleAt === null
      ? []
      : [
          `Closed   by the stalled rule of the environment, ${spokenTime(run.closedByRuleAt)}; its next event opens it again`,
        ]),
    ...(silence === null ? [] : [`It may have died. A SESSION_OUTCOME event ends a run.`]),
    '',
  ]
}

function whyLines(run: OperatorRun, { told, lost }: RunEnd): string[] {
  const why = whyEnded(run)
  const frame = told?.stack ? ownFrame(told.stack) : null
  const tools = [...new Set(lost.values())].slice(0, TOOLS_NAMED)
  const lines = [
    ...(why === null ? [] : [run.status === 'CANCELLED' ? printable(why) : toned('red', printable(why))]),
    ...(frame === null ? [] : [printable(`in ${frame}`)]),
    ...causeLines(told ?? { causes: [] }).map(printable),
    ...tools.map((tool) => printable(`${tool} never ended: it may have taken effect.`)),
    ...(run.closedByRuleAt === null ? [] : [SILENT_CAUSES]),
    ...(told?.stack ? [`\`tacho runs show ${printable(run.runId)} --stack\` shows the stack.`] : []),
  ]
  return lines.map((line, index) => `${index === 0 ? 'Why     ' : '        '} ${line}`)
}

/** Prints a run's error with its causes and stack. */
async function printStack(client: OperatorClient, place: RunPlace, run: OperatorRun): Promise<void> {
  const { runId, failure } = run
  if (failure === null)
    return printEmpty(
      `${run.status === 'CANCELLED' ? 'Its outcome does not say why it was cancelled' : 'No event tells an error'}. \`tacho runs show ${runId}\` shows all.`,
    )
  const failureLines = await toldFailure(client, place, run)
  printLine(toned('red', printable(failureLine(failureLines ?? failure, { kind: failure.place, name: failure.name }))))
  for (const line of causeLines(failureLines ?? { causes: [] })) printLine(`  ${printable(line)}`)
  const stack = failureLines?.stack ?? 'No stack was recorded.'
  for (const line of stack.split(/\r?\n/)) printLine(printable(line))
}

/** The failure in an event, with causes and stack. */
async function toldFailure(client: OperatorClient, place: RunPlace, { failure }: OperatorRun): Promise<Failure | null> {
  if (failure === null) return null
  const params = { ...place, eventId: failure.eventId }
  const { text } = answered(client.url, await client.whole.readEvent({ params }))
  const event = JSON.parse(text) as ToldEvent
  return failureOf(event) ?? cancellationOf(event)
}

function arrivedLine({ completeness }: OperatorRun): string {
  const text = printable(completenessText(completeness, spokenTime))
  return `Arrived  ${completeness.state === 'GAPS' ? toned('red', text) : text}`
}

function differing(count: number): string {
  if (count === 0) return ''
  return `; ${counted(count, 'retried event')} had different content; the first version was kept`
}

function costNote({ estimatedCost, priceTable, unpricedCalls }: OperatorRun): string {
  const estimate = estimatedCost === null ? '' : `, ${spokenMoney(estimatedCost)} of it estimated by ${priceTable}`
  return unpricedCalls === 0 ? estimate : `${estimate}, ${counted(unpricedCalls, 'call')} without a known cost`
}
