import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { RUN_FACTS, type ImportPart, type RunLine } from '../../domain/data/import.ts'
import type { EventVerdict } from '../../storage/record/events.ts'
import type { ExportedTable } from '../../storage/engine/tables.ts'
import type { RunRow } from '../../storage/runs/runs.ts'
import { holderOf } from '../tenants/rate-limit.ts'
import { isRefusal, refuse, type Refusal } from '../web/reply-error.ts'
import { refuseBody } from '../web/serve-route.ts'
import { createTurnsOfWorkspaces } from '../web/turns.ts'
import type { OperatorDeps, OperatorRequestOf } from '../web/operator-serve.ts'

type PartOf<Kind extends ImportPart['kind']> = Extract<ImportPart, { kind: Kind }>

/** The API keys of an archived environment are refused, so an import must not add to it either. */
const ARCHIVED = refuse('conflict', 'The environment or its workspace is archived. Restore it before the import')

interface Done {
  written: number
  known: number
}

/** Runs that are written at the same time, so that they share commits. */
const RUNS_AT_ONCE = 32

export function importsRoutes({ serve, storage, bodyValidator, now }: OperatorDeps): void {
  // The turn covers the whole import, so a failing one takes its turn too.
  const takeTurn = createTurnsOfWorkspaces(LIMITS.importsAtOnce, 'imports')

  serve('importEnvironment', (asked) => takeTurn(asked.reply, () => importLines(asked)))

  async function importLines({
    request,
    environment,
    workspace,
    actor,
    at,
    audit,
  }: OperatorRequestOf<'importEnvironment'>): Promise<Refusal | Done> {
    if (environment.archivedAt !== null || workspace.archivedAt !== null) return ARCHIVED
    const [environmentId, workspaceId] = [environment.id, workspace.id]
    const body = request.bodyBytes ?? Buffer.alloc(0)
    const read = await bodyValidator.readImport(body, workspaceId, holderOf(request))
    if ('ok' in read) return refuseBody(read)
    if ('line' in read) return refuse('invalid_request', `lines[${read.line}] ${read.message}`)
    const { source, resume } = read
    const start = { environmentId, source, resume, actorId: actor.id, now: at }
    const begun = await storage.beginImport(start, audit(environmentId, { source, resumed: resume }))
    if (begun !== 'begun') return NOT_BEGUN[begun]
    const done: Done = { written: 0, known: 0 }
    for (const some of together(read.parts)) {
      const refusals = await Promise.all(some.map((importedPart) => importPart(environmentId, importedPart, done)))
      const refusal = refusals.find(isRefusal)
      if (refusal) return refusal
    }
    return done
  }

  function importPart(environmentId: string, importedPart: ImportPart, done: Done): Promise<Refusal | null> {
    return importedPart.kind === 'rows'
      ? importRows(environmentId, importedPart, done)
      : importRun(environmentId, importedPart, done)
  }

  async function importRows(environmentId: string, importPart: PartOf<'rows'>, done: Done): Promise<Refusal | null> {
    const result = await storage.importRows(environmentId, importPart.table, importPart.rows, now())
    if (result.outcome !== 'imported') {
      return refuse(
        'conflict',
        `lines[${importPart.lines[result.index]}]: ${ROW_FAULTS[result.outcome](importPart.table)}`,
      )
    }
    done.written += result.written
    done.known += importPart.rows.length - result.written
    return null
  }

  async function importRun(environmentId: string, importPart: PartOf<'run'>, done: Done): Promise<Refusal | null> {
    const { run, line } = importPart
    const differs = (what: string): Refusal => refuse('conflict', `lines[${line}]: ${what}`)
    const known = [await storage.findRun(environmentId, run.runId), await storage.findRun(environmentId, run.id)]
    if (known.some((one) => one !== null && (one.id !== run.id || one.runId !== run.runId))) {
      return differs('another run has its id')
    }
    for (const { receivedAt, events } of byArrival(importPart.events)) {
      const verdicts = await storage.appendEvents({ environmentId, receivedAt, events, rejections: [], importing: run })
      const refused = verdicts.findIndex((verdict) => !ACCEPTED.has(verdict))
      if (refused >= 0) {
        const eventId = JSON.stringify(events[refused]?.eventId)
        return differs(`event ${eventId} of the run ${REASONS.get(verdicts[refused] ?? 'unstorable')}`)
      }
      const stored = verdicts.filter((verdict) => verdict === 'stored').length
      done.written += stored
      done.known += verdicts.length - stored
    }
    const imported = await storage.findRun(environmentId, run.runId)
    // The remaining events of the run arrive in another request.
    if (imported?.eventCount !== run.facts['eventCount']) return null
    const beyondEvents = ['pinnedAt', 'payloadsRemoved', 'ruleClosedAt', 'recorders'] as const
    if (beyondEvents.some((name) => run.facts[name] !== imported?.[name])) {
      await storage.importRun(environmentId, run.runId, run.facts)
    }
    const wrong = differingFact(await storage.findRun(environmentId, run.runId), run)
    return wrong === null ? null : differs(`${wrong} of the run is not that of its events`)
  }
}

const NOT_BEGUN = {
  not_empty: refuse(
    'conflict',
    'The environment is not empty. Import into a new one, or resume the import of the same file',
  ),
  other_source: refuse(
    'conflict',
    'No import of this file began in the environment. Begin it in an empty environment, without resume',
  ),
}

const ROW_FAULTS = {
  differs: (table: ExportedTable) => `another ${table} is stored in its place`,
  foreign: () => 'the workspace does not have its prompt or policy',
  erased: () => 'was erased, or names what was erased',
  too_large: () => 'more would be deployed than the limits allow',
}

const ACCEPTED: ReadonlySet<EventVerdict> = new Set(['stored', 'duplicate'])
const REASONS: ReadonlyMap<EventVerdict, string> = new Map([
  ['differing', 'is stored with other content'],
  ['erased', 'was erased'],
  ['unstorable', 'was rejected by the store'],
])

function* together(parts: readonly ImportPart[]): Generator<ImportPart[]> {
  let runs: ImportPart[] = []
  for (const importPart of parts) {
    const isNext =
      importPart.kind === 'run' && runs.length < RUNS_AT_ONCE && !runs.some((one) => isSameRun(one, importPart))
    if (!isNext && runs.length > 0) {
      yield runs
      runs = []
    }
    if (importPart.kind === 'run') runs.push(importPart)
    else yield [importPart]
  }
  if (runs.length > 0) yield runs
}

/** An export made while the environment was recording can have a run twice. */
const isSameRun = (one: ImportPart, other: ImportPart): boolean =>
  one.kind === 'run' && other.kind === 'run' && one.run.runId === other.run.runId

function byArrival(events: PartOf<'run'>['events']) {
  const batches: { receivedAt: number; events: PartOf<'run'>['events'][number]['event'][] }[] = []
  for (const { event, receivedAt } of events) {
    const last = batches.at(-1)
    if (last?.receivedAt === receivedAt) last.events.push(event)
    else batches.push({ receivedAt, events: [event] })
  }
  return batches
}

function differingFact(run: RunRow | null, { facts }: RunLine): string | null {
  return RUN_FACTS.find((name) => run?.[name] !== facts[name]) ?? null
}
