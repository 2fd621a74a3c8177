import {
  type ExportedKey,
  EXPORTED_AFTER_RUNS,
  EXPORTED_BEFORE_RUNS,
  EXPORTED_TABLES,
  memberOf,
} from '../../storage/data/exports.ts'
import type { StoredEvent } from '../../storage/record/events.ts'
import type { RunCriteria, RunPlace, RunRow } from '../../storage/runs/runs.ts'
import type { ExportedTable } from '../../storage/engine/tables.ts'
import type { Storage } from '../../storage/storage.ts'
import {
  countLine,
  endLine,
  eventLine,
  headLine,
  markLine,
  newExportState,
  rowLine,
  runLine,
  type ExportPlace,
  type ExportState,
  type Mark,
} from './export-lines.ts'

export interface ExportRequest {
  environmentId: string
  workspace: string
  environment: string
  filter: RunCriteria
  given: object
  from: Mark | null
  /** The list of runs with estimated costs. Needed for filters by cost. */
  runs?: Pick<Storage, 'listRuns'>
}

type Reads = Pick<Storage, 'readExported' | 'readArrived' | 'listRuns' | 'findRun' | 'findEvent'>

const RUNS_PER_PAGE = 100
const ROWS_PER_PAGE = 500
/** Large pages, because each page of a large run reads the run's order of arrival again. */
const EVENTS_PER_PAGE = 1_000
const EVENT_PAGE_BYTES = 1_048_576
const MARK_BYTES = 1_048_576
const MARK_LINES = 1_000
/** A piece takes about a millisecond. */
const PIECE_CHARS = 65_536

const SECTIONS: readonly ExportPlace['section'][] = [...EXPORTED_BEFORE_RUNS, 'run', ...EXPORTED_AFTER_RUNS]

interface Line {
  type: string
  text: string
  /** Where an export continues after this line; null: it can continue only after a later one. */
  place: ExportPlace | null
}

export async function* exportText(storage: Reads, request: ExportRequest): AsyncGenerator<string> {
  const { from } = request
  const state: ExportState = structuredClone(from ?? newExportState())
  let piece = ''
  let [sinceMark, bytesSinceMark] = [0, 0]
  const add = (type: string, text: string): void => {
    countLine(state, type, text)
    piece += `${text}\n`
  }
  if (from === null) add('export', headLine(request.workspace, request.environment, request.given))
  for await (const { type, text, place } of linesOf(storage, request)) {
    add(type, text)
    sinceMark++
    bytesSinceMark += text.length
    if (place !== null && (sinceMark >= MARK_LINES || bytesSinceMark >= MARK_BYTES)) {
      piece += `${markLine(state, place)}\n`
      sinceMark = bytesSinceMark = 0
    }
    if (piece.length < PIECE_CHARS) continue
    yield piece
    piece = ''
  }
  yield `${piece}${endLine(state)}\n`
}

async function* linesOf(storage: Reads, request: ExportRequest): AsyncGenerator<Line> {
  const start = request.from?.place ?? null
  const sections = start === null ? SECTIONS : SECTIONS.slice(SECTIONS.indexOf(start.section))
  for (const section of sections) {
    const place = start?.section === section ? start : null
    if (section === 'run') yield* linesOfRuns(storage, request, place)
    else yield* linesOfTable(storage, request.environmentId, section, place?.after ?? null)
  }
}

async function* linesOfTable(
  storage: Reads,
  environmentId: string,
  table: ExportedTable,
  start: ExportedKey | null,
): AsyncGenerator<Line> {
  const members = EXPORTED_TABLES[table].key.map(memberOf)
  for (let after = start, more = true; more;) {
    const page = await storage.readExported(environmentId, table, after, ROWS_PER_PAGE)
    for (const row of page.rows) {
      after = members.map((member) => row[member] as string | number)
      yield { type: table, text: rowLine(table, row), place: { section: table, after } }
    }
    more = page.more
  }
}

async function* linesOfRuns(
  storage: Reads,
  { environmentId, filter, runs: source = storage }: ExportRequest,
  start: ExportPlace | null,
): AsyncGenerator<Line> {
  let after: RunPlace | null = null
  if (start?.after) {
    const [startedAt, id] = start.after
    after = { startedAt: Number(startedAt), id: String(id) }
    const run = start.event === undefined ? null : await storage.findRun(environmentId, after.id)
    const last = run && (await storage.findEvent(environmentId, run.runId, start.event ?? ''))
    if (run && last) yield* linesOfEvents(storage, environmentId, run, last.event.seq, start.left ?? 0)
  }
  for await (const runs of pagesOfRuns(source, environmentId, filter, after)) {
    for (const run of runs) {
      yield { type: 'run', text: runLine(run), place: null }
      yield* linesOfEvents(storage, environmentId, run, 0, run.eventCount)
    }
  }
}

async function* linesOfEvents(
  storage: Reads,
  environmentId: string,
  run: RunRow,
  start: number,
  count: number,
): AsyncGenerator<Line> {
  const place: ExportPlace = { section: 'run', after: [run.startedAt, run.id] }
  let left = count
  for await (const events of pagesOfEvents(storage, environmentId, run.id, start, count)) {
    for (const event of events) {
      left--
      yield { type: 'event', text: eventLine(run, event), place: { ...place, event: event.eventId, left } }
    }
  }
}

export async function* pagesOfRuns(
  storage: Pick<Storage, 'listRuns'>,
  environmentId: string,
  filter: RunCriteria,
  start: RunPlace | null,
): AsyncGenerator<RunRow[]> {
  for (let after = start, more = true; more;) {
    const page = await storage.listRuns(environmentId, filter, { limit: RUNS_PER_PAGE, after })
    yield page.rows
    after = page.lookedTo ?? page.rows.at(-1) ?? after
    more = page.more
  }
}

/**
 * The first `count` events after a place, by arrival. The bound is needed because a run may grow faster than it is
 * read.
 */
export async function* pagesOfEvents(
  storage: Pick<Storage, 'readArrived'>,
  environmentId: string,
  run: string,
  start: number,
  count: number,
): AsyncGenerator<StoredEvent[]> {
  let left = count
  for (let after = start, more = true; more && left > 0;) {
    const page = { after, limit: Math.min(EVENTS_PER_PAGE, left), pageBytes: EVENT_PAGE_BYTES }
    const arrivedEvents = await storage.readArrived(environmentId, run, page)
    yield arrivedEvents.rows
    left -= arrivedEvents.rows.length
    after = arrivedEvents.rows.at(-1)?.seq ?? after
    more = arrivedEvents.more
  }
}
