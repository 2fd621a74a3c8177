/**
 *   (none) --first stored event--> RUNNING --first stored valid outcome--> COMPLETED | FAILED | CANCELLED
 *
 * The stalled rule may close a run without an event (stalled-rule.ts): the next event shows that it lives, and the first
 * outcome decides. A run that an outcome closed never reopens. Later events still count, add usage, and may lower the
 * start. A SCORE is no activity of its run: it neither opens it again nor moves its times, unless it is the first
 * event.
 */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { RunStatus } from '@tacho/contract/runs/run.ts'
import { addArrived, hasGaps, type Recorder } from '../../record/completeness.ts'
import { type NewEvent, type ImportedRun, keptSaid, payloadText, saidChars, type RunSaid } from '../../record/events.ts'
import { uuidv7 } from '../../engine/uuid.ts'
import { entryBytes, ownText } from './known-rows.ts'
import { SHORT_CHARS, shortText, textKey } from '../engine/keys.ts'
import { failureChars, foundFailure, isError, keptFailure, type RunFailure } from '../../record/failure.ts'
import { addCall, isLoop, loopTool, RECENT_CALLS_CHARS } from '../../issues/issues.ts'
import { addTraits, NO_TRAITS, traitLine } from '../../runs/runs.ts'
import { addUncosted, type RunCalls, type UsageSums } from '../../runs/usage.ts'
import { addUsage, noUsage } from '../runs/rollup.ts'

export interface RunState extends UsageSums {
  id: string
  /** Unique in the store. Events name the run by it. */
  number: number
  runId: string
  agentId: string
  status: RunStatus
  startedAt: number
  lastEventAt: number
  receivedAt: number
  eventCount: number
  differingRetries: number
  errorCount: number
  traits: string
  userId: string | null
  /** SHA-256 of `userId`. */
  userKey: string | null
  recentCalls: string | null
  failure: RunFailure | null
  said: RunSaid | null
  recorders: Recorder[]
  hasGaps: 0 | 1
  uncosted: RunCalls[]
  /** 1: no payload waits to be packed into a block. */
  packed: 0 | 1
  lastSeq: number
  endedAt: number | null
  closingSeq: number | null
  /** When the stalled rule closed the run. Null: it did not, or an outcome has replaced that. */
  ruleClosedAt: number | null
  /** Short form of the run's session: the first that an event names. */
  session: string | null
  /** Session of the run, if this transaction is the first to name one. */
  namedSession: string | null
  isNew: boolean
  /** Events counted when this transaction opened the run, for its first row. */
  openedEvents: number
  /** This transaction counted a retry or a rejection. The first row of a new run has none. */
  isRecounted: boolean
  /** This transaction changed an indexed column. */
  isMoved: boolean
  /** This transaction added traits, models, recorders, a failure, a title or an answer. */
  hasGrown: boolean
  hasNewGaps: boolean
  hasNewLoop: boolean
}

export interface Opening {
  agentId: string
  receivedAt: number
  importing: ImportedRun | null
}

export function openedRun(number: number, runId: string, { agentId, receivedAt, importing }: Opening): RunState {
  const { id = uuidv7(receivedAt), differingRetries = 0 } = importing ?? {}
  return { ...newRun(id, number, runId, agentId, receivedAt), differingRetries }
}

export function newRun(id: string, number: number, runId: string, agentId: string, receivedAt: number): RunState {
  return {
    id,
    number,
    runId,
    agentId,
    status: 'RUNNING',
    startedAt: Infinity,
    lastEventAt: -Infinity,
    receivedAt,
    eventCount: 0,
    differingRetries: 0,
    errorCount: 0,
    traits: NO_TRAITS,
    userId: null,
    userKey: null,
    recentCalls: null,
    failure: null,
    said: null,
    recorders: [],
    hasGaps: 0,
    uncosted: [],
    packed: 0,
    lastSeq: 0,
    ...noUsage(),
    endedAt: null,
    closingSeq: null,
    ruleClosedAt: null,
    session: null,
    ...UNCHANGED,
    isNew: true,
  }
}

export const UNCHANGED = {
  namedSession: null,
  isNew: false,
  openedEvents: 0,
  isRecounted: false,
  isMoved: false,
  hasGrown: false,
  hasNewGaps: false,
  hasNewLoop: false,
} as const satisfies Partial<RunState>

export function addEvent(run: RunState, seq: number, event: NewEvent): void {
  const { time, outcome, usage, promptUse } = event
  const isActivity = event.eventType !== 'SCORE' || run.eventCount === 0
  nameSession(run, event)
  noteTraits(run, event)
  noteUser(run, event)
  noteCall(run, event)
  noteSaid(run, event)
  if (addArrived(run.recorders, event, ownText)) run.hasGrown = true
  run.eventCount++
  run.lastSeq = seq
  if (isActivity && time > run.lastEventAt) run.lastEventAt = time
  if (usage !== null) addUsage(run, usage)
  if (usage?.uncosted) {
    const of = { model: usage.model, versionId: promptUse?.versionId ?? null }
    if (addUncosted(run.uncosted, of, usage.uncosted, ownText)) run.hasGrown = true
  }
  if (run.packed === 1) {
    run.packed = 0
    run.isMoved = true
  }
  if (isActivity && time < run.startedAt) {
    run.startedAt = time
    run.isMoved = true
  }
  const closes = outcome !== null && (run.status === 'RUNNING' || run.ruleClosedAt !== null)
  noteFailure(run, event, closes)
  if (isActivity && run.ruleClosedAt !== null) Object.assign(run, { ...RUNNING, isMoved: true })
  if (closes) {
    run.status = outcome
    run.endedAt = time
    run.closingSeq = seq
    run.isMoved = true
  }
}

const RUNNING = { status: 'RUNNING', endedAt: null, ruleClosedAt: null } as const

/** An outcome that did not close the run is no information about its end. */
function noteFailure(run: RunState, { failure, eventId, time, outcome }: NewEvent, closes: boolean): void {
  if (failure === null || (outcome !== null && !closes)) return
  const { errorClass, message, place } = failure
  const ownLine = (text: string | null) => text && ownText(text)
  const ownFailure = {
    errorClass: ownLine(errorClass),
    message: ownLine(message),
    place: { ...place, name: ownLine(place.name) },
  }
  const eventFailure = foundFailure(ownFailure, { eventId: ownText(eventId), time, isFinal: closes })
  const runFailure = keptFailure(run.failure, eventFailure)
  if (runFailure === run.failure) return
  run.failure = runFailure
  run.hasGrown = true
}

function noteSaid(run: RunState, event: NewEvent): void {
  const runSaid = keptSaid(run.said, event)
  if (runSaid === run.said) return
  const ownLine = <L extends { eventId: string; text: string } | null>(line: L): L =>
    line && { ...line, eventId: ownText(line.eventId), text: ownText(line.text) }
  run.said = { ...runSaid, title: ownLine(runSaid.title), answer: ownLine(runSaid.answer) }
  run.hasGrown = true
}

export function noteGaps(run: RunState): void {
  const now = hasGaps(run.recorders) ? 1 : 0
  if (now === run.hasGaps) return
  run.hasGaps = now
  run.isMoved = true
  run.hasNewGaps = now === 1
}

function noteTraits(run: RunState, event: NewEvent): void {
  if (isError(event)) run.errorCount++
  if (event.traits !== null) growTraits(run, event.traits)
}

function growTraits(run: RunState, traits: string): boolean {
  const all = addTraits(run.traits, traits)
  if (all === run.traits) return false
  run.traits = ownText(all)
  run.hasGrown = true
  return true
}

/** Keeps the first user that an event names, as with sessions. */
function noteUser(run: RunState, { userId }: NewEvent): void {
  if (userId === null || run.userId !== null) return
  run.userId = ownText(userId)
  run.userKey = textKey(userId)
  run.isMoved = true
  run.hasGrown = true
}

function noteCall(run: RunState, { callKey, toolUse, payload }: NewEvent): void {
  if (callKey === null || toolUse === null) return
  run.recentCalls = addCall(run.recentCalls, callKey)
  if (!isLoop(run.recentCalls)) return
  const tool = toolUse.tool || loopTool((JSON.parse(payloadText(payload)) as { toolName: string }).toolName)
  if (tool !== '' && !tool.includes('\0') && growTraits(run, traitLine('loop', tool))) run.hasNewLoop = true
}

export function nameSession(run: RunState, { sessionId }: Pick<NewEvent, 'sessionId'>): void {
  if (sessionId === null || run.session !== null) return
  run.session = ownText(shortText(sessionId))
  run.namedSession = sessionId
  run.isMoved = true
}

/**
 * Null: the session of its run, which this event may be the first to name. Empty: none. Otherwise '=' and the session.
 * Most runs have one session, so it is stored once.
 */
export function ownSession(run: RunState, { sessionId }: Pick<NewEvent, 'sessionId'>): string | null {
  if (sessionId === null) return ''
  return run.session === null || run.session === shortText(sessionId) ? null : `=${sessionId}`
}

/**
 * Whether the event would move a live run into the past, out of sight. Only an import may contain events of any age.
 */
export function isLateInRun(run: RunState, { time, onlyIfStored }: NewEvent, receivedAt: number): boolean {
  const limit = receivedAt - LIMITS.eventPastMs
  return time < limit && !onlyIfStored && !run.isNew && run.startedAt >= limit
}

const UNCOSTED_BYTES = 330
const RECORDER_BYTES = 400

/** Upper bound of the memory of a cached run, including a session that a later event may add. */
export function cachedRunBytes(place: string, run: RunState): number {
  const { runId, traits, userId, uncosted, recorders, failure, said } = run
  const chars = place.length + runId.length + SHORT_CHARS + traits.length + (userId?.length ?? 0) + RECENT_CALLS_CHARS
  const lists = uncosted.length * UNCOSTED_BYTES + recorders.length * RECORDER_BYTES
  const texts = (failure === null ? 0 : failureChars(failure)) + (said === null ? 0 : saidChars(said))
  return entryBytes(chars + lists + texts)
}
