/** Works slice by slice until the erasure is effective. Several nodes may do this concurrently. */
import type {
  CountedEvents,
  CountedUsage,
  Erasable,
  ErasableRun,
  ErasureRow,
  ErasureSlice,
} from '../../storage/data/erasures.ts'
import type { NewUsage, TimelinePlace } from '../../storage/record/events.ts'
import { hourOf } from '../../storage/engine/times.ts'
import { bucketOf, formerBucketOf, TOKEN_PARTS } from '../../storage/runs/usage.ts'
import type { Storage } from '../../storage/storage.ts'
import { valuesAt } from '../record/json-slices.ts'
import { promptUseOf, toolUseOf } from '../record/payload-facts.ts'
import { latencyOf, usageOf } from '../record/usage.ts'

export type ErasingStore = Pick<
  Storage,
  'listErasable' | 'listCountedNames' | 'removeErased' | 'concludeErasure' | 'listEvents'
>

export interface Erasing {
  environmentId: string
  id: string
  now: () => number
  isOver: () => boolean
}

const RUNS_AT_ONCE = 500
/** Events deleted in one transaction. Appends wait for it, so it is small. */
const EVENTS_AT_ONCE = 5_000
const PAGE = { limit: 1_000, pageBytes: 4 * 1_048_576 }

export async function advanceErasure(
  storage: ErasingStore,
  { environmentId, id, now, isOver }: Erasing,
): Promise<ErasureRow | null> {
  for (;;) {
    const next = await storage.listErasable(environmentId, id, RUNS_AT_ONCE)
    if (next === null || next.erasure.status !== 'SEARCHING') return next?.erasure ?? null
    if (next.runs.length === 0 && next.searched === 0) {
      const concluded = await storage.concludeErasure(environmentId, id, now())
      if (concluded?.status !== 'SEARCHING') return concluded
    }
    for await (const slice of slicesOf(storage, environmentId, next, isOver)) {
      await storage.removeErased(environmentId, id, slice, now())
      if (isOver()) return next.erasure
    }
    if (isOver()) return next.erasure
  }
}

async function* slicesOf(
  storage: ErasingStore,
  environmentId: string,
  next: Erasable,
  isOver: () => boolean,
): AsyncGenerator<ErasureSlice> {
  const { runs, searchedTo, searched } = next
  if (runs.length === 0 && searched === 0) return
  let slice: ErasureSlice['runs'] = []
  let events = 0
  for (const run of runs) {
    const examinedPart = await examine(storage, environmentId, run, next, isOver)
    if (examinedPart === 'over') return
    if (examinedPart === null) continue
    slice.push({ number: run.number, counted: examinedPart.counted })
    events += examinedPart.counted?.usage.length ?? 0
    if (events < EVENTS_AT_ONCE) continue
    // Only the last slice records how far the search has come.
    yield { runs: slice, searchedTo: -1, searched: 0 }
    slice = []
    events = 0
  }
  yield { runs: slice, searchedTo, searched }
}

/** Null: the run does not belong to the erasure. `over`: the examination was stopped while it read events. */
async function examine(
  storage: ErasingStore,
  environmentId: string,
  run: ErasableRun,
  { erasure: { field, subject }, usageFrom }: Erasable,
  isOver: () => boolean,
): Promise<{ counted: CountedEvents | null } | 'over' | null> {
  // The agent's usage before this hour is deleted as a whole.
  if (usageFrom !== null && run.lastEventAt < usageFrom && run.usesPrompts === 0) return { counted: null }
  const counted: CountedEvents = { runEvents: run.events, events: 0, usage: [], agentFrom: usageFrom }
  const usage = new Map<string, CountedUsage>()
  let names: ReadonlySet<string> | null = null
  let isFound = run.isFound
  let after: TimelinePlace | null = null
  for (;;) {
    const { rows, more } = await storage.listEvents(environmentId, run.id, { ...PAGE, after })
    for (const { time, eventType, payload, payloadBytes, payloadDamaged } of rows) {
      counted.events++
      // The payload is lost, and with it the model, tool or version. So the usage cannot be subtracted.
      const isLost = payloadBytes === 0 || payloadDamaged === true
      if (isLost && eventType === 'LLM_CALL') continue
      const isCall = eventType === 'LLM_CALL' || eventType === 'TOOL_CALL'
      const mayMatch = !isFound && field !== null && subject !== null
      if (mayMatch && mayContain(payload, subject)) isFound = hasValue(payload, field, subject)
      const data = isCall || eventType === 'POLICY_DECISION' ? (JSON.parse(payload) as Record<string, unknown>) : {}
      if (usageFrom !== null && time < usageFrom && run.usesPrompts === 0) continue
      count(usage, names, {
        time: hourOf(time),
        eventType: isCall ? eventType : '',
        usage: usageOf(eventType, data),
        latencyMs: isCall ? latencyOf(eventType, data) : null,
        promptUse: isCall ? promptUseOf(eventType, data) : null,
        toolUse: isLost ? null : toolUseOf(eventType, data),
        times: 1,
      })
    }
    if (names === null && usage.size > NAMED_ENTRIES) {
      names = new Set(await storage.listCountedNames(environmentId))
      const entries = [...usage.values()]
      usage.clear()
      for (const entry of entries) count(usage, names, entry)
    }
    const last = rows.at(-1)
    if (!more || last === undefined) break
    if (isOver()) return 'over'
    after = { time: last.time, seq: last.seq }
  }
  counted.usage = [...usage.values()]
  return isFound ? { counted } : null
}

const NAMED_ENTRIES = 2_000
const OTHER = 'other'

/**
 * Merges events of the same rows into one entry, because a run may have millions. Other names than `names` count as
 * one; null: each name counts.
 */
function count(entries: Map<string, CountedUsage>, names: ReadonlySet<string> | null, one: CountedUsage): void {
  const { time, eventType, latencyMs, promptUse, times } = one
  const nameOf = (name: string) => (names === null || name === '' || names.has(name) ? name : OTHER)
  const usage = one.usage && { ...one.usage, model: nameOf(one.usage.model) }
  const toolUse = one.toolUse && { ...one.toolUse, tool: nameOf(one.toolUse.tool) }
  const buckets = latencyMs === null ? null : [bucketOf(latencyMs), formerBucketOf(latencyMs)]
  const call = [usage?.model, usage?.uncosted?.context, buckets, promptUse?.versionId]
  const place = JSON.stringify([time, eventType, ...call, toolUse])
  const same = entries.get(place)
  if (same === undefined) return void entries.set(place, { ...one, usage, toolUse })
  same.times += times
  if (same.usage && usage) same.usage = sumOf(same.usage, usage)
}

const SUMS = ['promptTokens', 'completionTokens', 'totalTokens', 'costNanos'] as const

function sumOf(one: NewUsage, other: NewUsage): NewUsage {
  const added = <Name extends string>(names: readonly Name[], a: Record<Name, number>, b: Record<Name, number>) =>
    Object.fromEntries(names.map((name) => [name, Math.min(a[name] + b[name], Number.MAX_SAFE_INTEGER)]))
  const uncosted = one.uncosted &&
    other.uncosted && { ...one.uncosted, ...added(TOKEN_PARTS, one.uncosted, other.uncosted) }
  return { ...one, ...added(SUMS, one, other), uncosted }
}

/** JSON without an escape contains the text literally. */
const mayContain = (payload: string, id: string): boolean => payload.includes(id) || payload.includes('\\')

/** A number is compared as it is written, because a double would lose digits. */
function hasValue(payload: string, keys: readonly string[], id: string): boolean {
  return valuesAt(payload, keys).some((value) =>
    value.startsWith('"') ? JSON.parse(value) === id : value === id && IS_NUMBER.test(id),
  )
}

const IS_NUMBER = /^-?\d/
