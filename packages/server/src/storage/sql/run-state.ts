/**
 * A run's state, derived from its events:
 *
 *   (none) --first stored event--> RUNNING --first stored valid outcome--> COMPLETED | FAILED | CANCELLED
 *
 * A closed run never reopens. Later events still count, add usage, and may lower the start.
 */
import type { RunStatus } from '@tacho/contract/run.ts'
import type { NewEvent } from '../events.ts'
import { addUsage, noUsage, type UsageSums } from './sums.ts'

export interface RunState extends UsageSums {
  id: string
  runId: string
  agentId: string
  status: RunStatus
  startedAt: number
  lastEventAt: number
  receivedAt: number
  eventCount: number
  differingRetries: number
  /** The largest seq of its events. */
  lastSeq: number
  endedAt: number | null
  closingSeq: number | null
  hasSession: boolean
  /** Its session, if this transaction is the first to name one. */
  namedSession: string | null
  /** This transaction opens it. */
  isNew: boolean
  /** This transaction changed an indexed column. */
  isMoved: boolean
}

export function newRun(id: string, runId: string, agentId: string, receivedAt: number): RunState {
  return {
    id,
    runId,
    agentId,
    status: 'RUNNING',
    startedAt: Infinity,
    lastEventAt: -Infinity,
    receivedAt,
    eventCount: 0,
    differingRetries: 0,
    lastSeq: 0,
    ...noUsage(),
    endedAt: null,
    closingSeq: null,
    hasSession: false,
    namedSession: null,
    isNew: true,
    isMoved: false,
  }
}

/** Adds an event that was just stored. */
export function addEvent(run: RunState, seq: number, { time, sessionId, outcome, usage }: NewEvent): void {
  run.eventCount++
  run.lastSeq = seq
  if (time > run.lastEventAt) run.lastEventAt = time
  if (usage !== null) addUsage(run, usage)
  if (time < run.startedAt) {
    run.startedAt = time
    run.isMoved = true
  }
  if (sessionId !== null && !run.hasSession) {
    run.hasSession = true
    run.namedSession = sessionId
    run.isMoved = true
  }
  if (outcome !== null && run.status === 'RUNNING') {
    run.status = outcome
    run.endedAt = time
    run.closingSeq = seq
    run.isMoved = true
  }
}
