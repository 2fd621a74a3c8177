/** Turns a transcript into a run with event ids and payloads, still without times. Pure. */
import type { EventInput } from '@tacho/contract/record/event.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { RunOutcome } from '@tacho/contract/runs/run.ts'
import { draftMessages, type EventDraft } from './message-events.ts'
import { fitPayload } from './shortened-payload.ts'
import { hashedBase, ownTimes, steppedTimes } from './times.ts'
import type { Transcript } from './transcript.ts'

export interface ImportOptions {
  agentName: string
  agentId: string | null
  runPrefix: string
  sessionField: string | null
  outcomeField: string | null
  /** The outcome of lines without an outcome field. */
  defaultOutcome: RunOutcome | null
}

export interface RunDraft {
  hash: string
  runId: string
  sessionId: string | null
  events: EventDraft[]
  /** Whether the last event ends the run because the transcript has no outcome. */
  isClosed: boolean
  /** Faults: parts that could not be imported unchanged, each as part of a sentence. */
  problems: string[]
}

const CLIENT_ID = 'tacho-import'

/** Hex digits of the transcript's hash in a run id, after the prefix. */
export const HASH_CHARS = 32

export function draftRun(transcript: Transcript, options: ImportOptions): RunDraft {
  const { hash, fields } = transcript
  const problems: string[] = []
  const events = draftMessages(transcript, problems)
  const outcome = draftOutcome(hash, fields, options, problems) ?? closingOutcome(hash, events)
  return {
    hash,
    runId: options.runPrefix + hash,
    sessionId: readSession(fields, options.sessionField, problems),
    events: [...events, outcome].map((event) => fitted(event, problems)),
    isClosed: Object.hasOwn(outcome.payload, 'closedBy'),
    problems,
  }
}

/** Ends a run without an outcome. An imported run is long over, so it must not stay RUNNING for an hour. */
function closingOutcome(hash: string, events: readonly EventDraft[]): EventDraft {
  const error = events.at(-1)?.payload['error']
  const status: RunOutcome = error === undefined || error === null ? 'COMPLETED' : 'FAILED'
  const payload = { status, closedBy: 'import', ...(status === 'FAILED' ? { error } : {}) }
  return { eventId: outcomeId(hash), eventType: 'SESSION_OUTCOME', label: status, payload, time: null }
}

function draftOutcome(
  hash: string,
  fields: Record<string, unknown>,
  { outcomeField, defaultOutcome }: ImportOptions,
  problems: string[],
): EventDraft | null {
  const value = outcomeField === null ? undefined : fieldAt(fields, outcomeField)
  const outcome = outcomeOf(value)
  if (outcome.kind === 'unclear') {
    problems.push(`its ${outcomeField} is neither success nor failure, so its last event says the outcome`)
    return null
  }
  const status = outcome.kind === 'known' ? outcome.status : defaultOutcome
  if (status === null) return null
  const payload = { status, ...(outcomeField === null ? {} : { field: outcomeField, value: value ?? null }) }
  return { eventId: outcomeId(hash), eventType: 'SESSION_OUTCOME', label: status, payload, time: null }
}

function outcomeId(hash: string): string {
  return `${hash}-outcome`
}

function readSession(fields: Record<string, unknown>, path: string | null, problems: string[]): string | null {
  const value = path === null ? undefined : fieldAt(fields, path)
  if (value === undefined || value === null) return null
  const text = typeof value === 'number' ? String(value) : value
  if (typeof text === 'string' && text !== '' && text.isWellFormed() && !text.includes('\0')) return text
  problems.push(`its ${path} is not usable as a session id`)
  return null
}

function fitted(event: EventDraft, problems: string[]): EventDraft {
  const { payload, shortened } = fitPayload(event.payload)
  if (!shortened) return event
  const kib = LIMITS.payloadBytes / 1024
  problems.push(`the payload of ${event.label} is over ${kib} KiB or nested too deep: it was shortened`)
  return { ...event, payload }
}

/** The times of the first stored event of a run. */
export interface StoredEvent {
  eventId: string
  time: number
}

/** Whether times must be generated. An earlier import may then have stored the run with another base time. */
export function needsBase(run: RunDraft, now: number): boolean {
  return ownTimes(knownTimes(run), now) === null
}

/** Strictly increasing times of the run's events. A continued import uses the base time of the `stored` events. */
export function timesOf(run: RunDraft, now: number, stored: StoredEvent | null): number[] {
  const runTimes = ownTimes(knownTimes(run), now)
  if (runTimes) return runTimes
  // Always count the outcome, so that a later import that adds outcomes has the same steps.
  const places = run.events.filter(({ eventId }) => eventId !== outcomeId(run.hash)).length + 1
  const offsets = steppedTimes(0, places)
  const place = run.events.findIndex(({ eventId }) => eventId === stored?.eventId)
  const storedOffset = stored?.eventId === outcomeId(run.hash) ? offsets.at(-1) : offsets[place]
  const base = stored === null || storedOffset === undefined ? hashedBase(run.hash, now) : stored.time - storedOffset
  return run.events.map((_, index) => base + (offsets[index] ?? 0))
}

function knownTimes(run: RunDraft): (number | null)[] {
  return run.events.map(({ time }) => time)
}

/** The run as events of the public API. */
export function timedEvents(run: RunDraft, times: readonly number[], options: ImportOptions): EventInput[] {
  return run.events.map(({ eventId, eventType, label, payload }, index) => ({
    eventId,
    clientId: CLIENT_ID,
    runId: run.runId,
    sessionId: run.sessionId,
    agentId: options.agentId,
    agentName: options.agentName,
    eventType,
    label,
    timestamp: times[index] ?? 0,
    payload,
  }))
}

/** Maps a value such as a reward to the outcome of a run. Pure. docs/automation.md has the same table. */

const WORDS: Record<RunOutcome, readonly string[]> = {
  COMPLETED: ['completed', 'complete', 'success', 'succeeded', 'successful', 'passed', 'pass', 'solved', 'true', '1'],
  FAILED: ['failed', 'fail', 'failure', 'error', 'unsolved', 'false', '0'],
  CANCELLED: ['cancelled', 'canceled', 'aborted'],
}

type Outcome =
  | { kind: 'known'; status: RunOutcome }
  /** The field is missing, or is null. */
  | { kind: 'absent' }
  | { kind: 'unclear' }

/** Accepts 1 and 0, true and false, and words in any case. A number between 0 and 1 is unclear. */
export function outcomeOf(value: unknown): Outcome {
  if (value === undefined || value === null) return { kind: 'absent' }
  if (!['number', 'boolean', 'string'].includes(typeof value)) return { kind: 'unclear' }
  const word = String(value as number | boolean | string)
    .trim()
    .toLowerCase()
  const status = (Object.keys(WORDS) as RunOutcome[]).find((known) => WORDS[known].includes(word))
  return status === undefined ? { kind: 'unclear' } : { kind: 'known', status }
}

/** The value at a path such as `reward` or `info.result`. A field whose name contains the dots wins. */
export function fieldAt(fields: Record<string, unknown>, path: string): unknown {
  if (Object.hasOwn(fields, path)) return fields[path]
  let value: unknown = fields
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value
}
