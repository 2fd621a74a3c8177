/** Complete rows for tests. A test gives only the fields that matter to it. */
import { randomUUID } from 'node:crypto'
import type { EventBatchRows, EventVerdict, NewEvent, NewUsage } from '../../../src/storage/record/events.ts'
import type { EventFailure } from '../../../src/storage/record/failure.ts'
import type { NewScore } from '../../../src/storage/runs/scores.ts'
import type { RunRow } from '../../../src/storage/runs/runs.ts'
import type { Storage } from '../../../src/storage/storage.ts'

/** 2026-09-21T14:00:00Z: the start of an hour. */
export const NOON = 1_790_000_000_000 - (1_790_000_000_000 % 3_600_000)
export const HOUR = 3_600_000

export const newId = (): string => randomUUID()

export function event(given: Partial<NewEvent> = {}): NewEvent {
  return {
    eventId: newId(),
    clientId: 'client',
    runId: 'run',
    sessionId: null,
    agentId: null,
    agentName: 'Support bot',
    eventType: 'AGENT_STEP',
    label: 'Thinks',
    time: NOON,
    payload: '{}',
    spanId: null,
    parentSpanId: null,
    schemaVersion: null,
    outcome: null,
    usage: null,
    latencyMs: null,
    promptUse: null,
    toolUse: null,
    failure: null,
    said: null,
    traits: null,
    userId: null,
    callKey: null,
    score: null,
    approval: null,
    number: null,
    drops: null,
    onlyIfStored: false,
    ...given,
  }
}

export function sampleFailure(given: Partial<EventFailure> = {}): EventFailure {
  const place = { kind: 'tool', name: 'get_order' } as const
  return { errorClass: 'TimeoutError', message: 'no answer after 5 s', place, ...given }
}

export async function newEnvironment(storage: Storage): Promise<string> {
  const [workspaceId, id] = [newId(), newId()]
  await storage.createWorkspace({ id: workspaceId, name: workspaceId, createdAt: NOON }, [])
  await storage.createEnvironment({ id, workspaceId, name: 'production', createdAt: NOON }, [])
  return id
}

export function llmCall(usage: Partial<NewUsage>, given: Partial<NewEvent> = {}): NewEvent {
  const none = { model: 'model-a', promptTokens: 0, completionTokens: 0, totalTokens: 0, costNanos: 0, uncosted: null }
  return event({ eventType: 'LLM_CALL', usage: { ...none, ...usage }, ...given })
}

/** A SCORE event with this score. */
export function scored(
  name: string,
  value: number | boolean | string,
  given: Partial<NewEvent & NewScore> = {},
): NewEvent {
  const { comment = null, author = '', target = null, ...rest } = given
  const kind = typeof value === 'number' ? 'NUMBER' : typeof value === 'boolean' ? 'BOOLEAN' : 'CATEGORY'
  const category = typeof value === 'string' ? value : null
  const number = typeof value === 'string' ? null : Number(value)
  const score = { name, kind, number, category, comment, author, target } as const
  return event({ eventType: 'SCORE', label: name, score, ...rest })
}

export function outcome(status: NonNullable<NewEvent['outcome']>, given: Partial<NewEvent> = {}): NewEvent {
  return event({ eventType: 'SESSION_OUTCOME', outcome: status, ...given })
}

export function batch(environmentId: string, events: NewEvent[], given: Partial<EventBatchRows> = {}): EventBatchRows {
  return { environmentId, receivedAt: NOON, events, rejections: [], ...given }
}

export function append(storage: Storage, environmentId: string, ...events: NewEvent[]): Promise<EventVerdict[]> {
  return storage.appendEvents(batch(environmentId, events))
}

export async function runOf(storage: Storage, environmentId: string, runId = 'run'): Promise<RunRow> {
  const run = await storage.findRun(environmentId, runId)
  if (run === null) throw new Error(`There is no run ${runId}`)
  return run
}

export async function timelineOf(storage: Storage, environmentId: string, runId = 'run') {
  const run = await runOf(storage, environmentId, runId)
  const page = { limit: 10_000, pageBytes: Number.MAX_SAFE_INTEGER, after: null }
  return (await storage.listEvents(environmentId, run.id, page)).rows
}
