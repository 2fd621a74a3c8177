/** `tacho runs follow`: asks again and again; survives a restart of the server. */
import { LIMITS } from '@tacho/contract/limits.ts'
import type { OperatorRun } from '@tacho/contract/operator/run.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { Refused, type OperatorClient, type Reply } from '../operator-client.ts'
import { printable, printJsonLine, printLine } from '../output.ts'
import { runLine } from './list.ts'
import type { RunPlace } from './show.ts'
import { eventLine } from './timeline.ts'

const POLL_MS = 1_000
/** Looks at an ended run that find nothing new before it counts as over: events may still be on their way. */
const QUIET_LOOKS = 3
const LONGEST_PAUSE_MS = 10_000

/** Prints events in the order in which they arrive, until the run has ended and nothing more comes. */
export async function followRun(client: OperatorClient, place: RunPlace, asJson: boolean): Promise<void> {
  let run = await client.readOperatorRun({ params: place })
  const startedAt = Date.parse(run.startedAt)
  let cursor: string | null = null
  for (let quiet = 0; quiet < QUIET_LOOKS;) {
    const page: Reply<'listEventRows'> = await persistently(() =>
      client.listEventRows({
        params: place,
        query: { order: 'arrival', limit: LIMITS.eventsPageMax, ...(cursor === null ? {} : { cursor }) },
      }),
    )
    for (const row of page.items) {
      if (asJson) printJsonLine(row)
      else printLine(eventLine(row, startedAt))
    }
    cursor = page.nextCursor ?? cursor
    if (page.items.length === LIMITS.eventsPageMax) continue
    if (page.items.length > 0) quiet = 0
    run = await persistently(() => client.readOperatorRun({ params: place }))
    if (run.status !== 'RUNNING') quiet += 1
    if (quiet < QUIET_LOOKS) await sleep(POLL_MS)
  }
  if (!asJson) process.stderr.write(`The run has ended: ${run.status}.\n`)
}

/** The list is ordered by start; a run that started long before it was recorded shows only among the newest of these. */
const MOST_PAGES = 10
const REMEMBERED_RUNS = 10_000

/** Prints new runs as they appear, for ever. */
export async function followRuns(client: OperatorClient, environmentId: string, asJson: boolean): Promise<void> {
  const first = await client.listOperatorRuns({
    params: { environmentId },
    query: { limit: LIMITS.operatorPageMax },
  })
  const seen = new Set(first.items.map(({ id }) => id))
  // A run that leaves the first page lets an older one in, which is not new.
  const since = Math.max(0, ...first.items.map(({ receivedAt }) => Date.parse(receivedAt)))
  for (;;) {
    await sleep(POLL_MS)
    const fresh = await newRuns(client, environmentId, seen, since)
    for (const run of fresh) {
      if (asJson) printJsonLine(run)
      else printLine(printable(runLine(run)))
    }
    for (const id of seen.values().take(Math.max(0, seen.size - REMEMBERED_RUNS))) seen.delete(id)
  }
}

/** Unseen runs, the oldest arrival first: pages are read until one brings nothing new. */
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

/** Waits for a server that is away; says so once. */
async function persistently<Value>(call: () => Promise<Value>): Promise<Value> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof Refused) || !error.result.temporary) throw error
      if (attempt === 0) process.stderr.write(`${error.message} Waiting for it.\n`)
      await sleep(Math.min(LONGEST_PAUSE_MS, POLL_MS * 2 ** attempt))
    }
  }
}
