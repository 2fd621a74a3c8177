/** `tacho runs follow`: polls the server; survives a server restart. */
import type { EventRow } from '@tacho/contract/record/event.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { known } from '../engine/find-by-id.ts'
import { Refused, type OperatorClient, type Reply } from '../engine/operator-client.ts'
import { currentLook } from '../engine/display.ts'
import { printJsonLine, printLine } from '../engine/output.ts'
import { runLine } from './list.ts'
import { stepsOf, type RunPlace } from './show.ts'
import { stepLine } from './step-line.ts'

const POLL_MS = 1_000
/** Polls without new events before an ended run counts as complete: late events may still arrive. */
const QUIET_LOOKS = 3
const LONGEST_PAUSE_MS = 10_000
/** While following, no tool counts as unended: its end may be in the next event. */
const NONE: ReadonlySet<string> = new Set()

/** Prints events in order of arrival, until the run has ended and no more arrive. */
export async function followRun(client: OperatorClient, runPlace: RunPlace, asJson: boolean): Promise<void> {
  const { environmentId } = runPlace
  const read = (runId: string) => client.readOperatorRun({ params: { environmentId, runId } })
  let run = await known('run', runPlace.runId, { client, environmentId }, read)
  const place = { environmentId, runId: run.id }
  const print = stepPrinter(client, place, Date.parse(run.startedAt), asJson)
  let cursor: string | null = null
  for (let quiet = 0; quiet < QUIET_LOOKS;) {
    const page: Reply<'listEventRows'> = await persistently(() =>
      client.listEventRows({
        params: place,
        query: { order: 'arrival', limit: LIMITS.eventsPageMax, ...(cursor === null ? {} : { cursor }) },
      }),
    )
    await print(page.items)
    cursor = page.nextCursor ?? cursor
    if (page.items.length === LIMITS.eventsPageMax) continue
    if (page.items.length > 0) quiet = 0
    run = await persistently(() => client.readOperatorRun({ params: place }))
    if (run.status !== 'RUNNING') quiet += 1
    if (quiet < QUIET_LOOKS) await sleep(POLL_MS)
  }
  if (!asJson) process.stderr.write(`The run has ended: ${run.status}.\n`)
}

/** Prints the rows of a page. */
function stepPrinter(client: OperatorClient, place: RunPlace, startedAt: number, asJson: boolean) {
  return async (rows: EventRow[]): Promise<void> => {
    if (asJson) return rows.forEach(printJsonLine)
    for await (const { row, payload } of stepsOf(client, place, rows, { neverEnded: NONE })) {
      printLine(stepLine(row, payload, { startedAt, hasCost: true, neverEnded: NONE }, currentLook()))
    }
  }
}

/**
 * Maximum number of pages to read. The list is sorted by start, so a run that is recorded long after its start is
 * missed beyond these pages.
 */
const MOST_PAGES = 10
const REMEMBERED_RUNS = 10_000

/** Prints new runs, until interrupted. */
export async function followRuns(client: OperatorClient, environmentId: string, asJson: boolean): Promise<void> {
  const first = await client.listOperatorRuns({
    params: { environmentId },
    query: { limit: LIMITS.operatorPageMax },
  })
  const seen = new Set(first.items.map(({ id }) => id))
  // Ignore runs received earlier: when a run leaves the first page, an older one moves in.
  const since = Math.max(0, ...first.items.map(({ receivedAt }) => Date.parse(receivedAt)))
  for (;;) {
    await sleep(POLL_MS)
    const fresh = await newRuns(client, environmentId, seen, since)
    for (const run of fresh) {
      if (asJson) printJsonLine(run)
      else printLine(runLine(run))
    }
    for (const id of seen.values().take(Math.max(0, seen.size - REMEMBERED_RUNS))) seen.delete(id)
  }
}

/** Unseen runs, sorted by arrival. Reads pages until one has nothing new. */
async function newRuns(
  client: OperatorClient,
  environmentId: string,
  seen: Set<string>,
  since: number,
): Promise<OperatorRun[]> {
  const fresh: OperatorRun[] = []
  let cursor: string | null = null
  for (let page = 0; page < MOST_PAGES; page++) {
    const { items, nextCursor }: Reply<'listOperatorRuns'> = await persistently(() =>
      client.listOperatorRuns({
        params: { environmentId },
        query: { limit: LIMITS.operatorPageMax, ...(cursor === null ? {} : { cursor }) },
      }),
    )
    const unseen = items.filter(({ id, receivedAt }) => !seen.has(id) && Date.parse(receivedAt) >= since)
    for (const { id } of unseen) seen.add(id)
    fresh.push(...unseen)
    cursor = nextCursor
    if (unseen.length < items.length || cursor === null) break
  }
  return fresh.sort((one, other) => Date.parse(one.receivedAt) - Date.parse(other.receivedAt))
}

/** Retries a call while the server does not answer. Prints one line about it. */
async function persistently<Value>(call: () => Promise<Value>): Promise<Value> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof Refused) || !error.result.temporary) throw error
      if (attempt === 0) process.stderr.write(`${error.message} Retrying until it answers.\n`)
      await sleep(Math.min(LONGEST_PAUSE_MS, POLL_MS * 2 ** attempt))
    }
  }
}
