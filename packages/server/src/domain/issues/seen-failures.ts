/** An error that passes through a tool, its step and the run is one failure, of the most precise of their events. */
import { failureOf, type Failure } from '@tacho/contract/issues/failure.ts'
import type { Payload, StoredEvent } from '../../storage/record/events.ts'
import { promptUseOf } from '../record/prompt-use.ts'
import { releaseOf } from './release.ts'
import type { FailureKind, SeenFailure } from './failure-issue.ts'

export interface FailedEvent {
  event: StoredEvent
  failure: SeenFailure
  release: string | null
  promptVersionId: string | null
}

export interface ToldFailure extends FailedEvent {
  rank: number
  isBare: boolean
  /** A command that ended with another code than 0: daily work of a coding agent (docs/decisions/0106-issues-from-what-fails.md). */
  isCommand: boolean
}

/** `told`: all failures of the events that were read. */
export function isCounted(one: ToldFailure, told: readonly ToldFailure[]): boolean {
  if (ofPolicy(one) || one.isCommand) return false
  if (one.isBare) return !told.some((other) => other !== one && other.event.eventType !== one.event.eventType)
  return !told.some((other) => isMorePrecise(other, one) && repeats(one.failure, other.failure))
}

/** The most precise first. */
const RANKS = ['TOOL_CALL', 'LLM_CALL', 'ERROR', 'AGENT_STEP', 'AGENT_END', 'SESSION_OUTCOME']
const KIND_BY_EVENT = new Map<string, FailureKind>([
  ['TOOL_CALL', 'TOOL_FAILED'],
  ['LLM_CALL', 'MODEL_FAILED'],
  ['ERROR', 'ERROR_RECORDED'],
])

export function toldFailure(event: StoredEvent): ToldFailure | null {
  const { eventType, label } = event
  const payload = event.payload === '' ? null : (JSON.parse(event.payload) as Payload)
  const told = payload && failureOf({ eventType, label, payload })
  if (!told) return null
  const { place, errorClass: type, message, stack } = told
  const causes = told.causes.map((cause) => ({ type: cause.errorClass, message: cause.message }))
  const isStep = eventType === 'AGENT_STEP' && event.parentSpanId !== null
  return {
    event,
    failure: {
      kind: KIND_BY_EVENT.get(eventType) ?? (isStep ? 'STEP_FAILED' : 'RUN_FAILED'),
      agent: event.agentId ?? event.agentName,
      toolName: place.kind === 'tool' ? place.name : null,
      model: place.kind === 'model' ? place.name : null,
      error: { type, message: wholeMessage(payload, told), stack, causes },
    },
    release: releaseOf(payload),
    promptVersionId: promptUseOf(eventType, payload)?.versionId ?? null,
    rank: RANKS.indexOf(eventType),
    isCommand: eventType === 'TOOL_CALL' && Number.isInteger(payload['exitCode']) && payload['exitCode'] !== 0,
    isBare: type === null && message === null && RANKS.indexOf(eventType) > RANKS.indexOf('AGENT_STEP'),
  }
}

const MESSAGE_CHARS = 1_000

/** Validation errors name the field after the first line. */
function wholeMessage(payload: Payload, { message }: Failure): string | null {
  if (message === null || message.endsWith('…')) return message
  const { exception, error } = payload
  const messageIn = (value: unknown): unknown =>
    typeof value === 'object' && value !== null ? (value as Payload)['message'] : value
  for (const text of [messageIn(exception), messageIn(error), payload['message']]) {
    const at = typeof text === 'string' ? text.slice(0, MESSAGE_CHARS).indexOf(message) : -1
    if (typeof text === 'string' && at !== -1) return withoutStack(text.slice(at, at + MESSAGE_CHARS))
  }
  return message
}

function withoutStack(text: string): string {
  const ends = ['\n    at ', '\nTraceback ', '\n  File "'].map((mark) => text.indexOf(mark)).filter((at) => at !== -1)
  return text.slice(0, Math.min(text.length, ...ends))
}

/** Clients report a call that a policy stopped as TOOL_BLOCKED. */
function ofPolicy({ failure: { error } }: ToldFailure): boolean {
  return [error, ...error.causes].some(({ type }) => type?.split('.').at(-1) === 'ToolBlockedError')
}

/** Of two steps with the same error, the one that began last is inside the other. */
function isMorePrecise(other: ToldFailure, one: ToldFailure): boolean {
  if (other.rank !== one.rank) return other.rank < one.rank
  if (KIND_BY_EVENT.has(one.event.eventType)) return false
  return other.event.time > one.event.time || (other.event.time === one.event.time && other.event.seq > one.event.seq)
}

/** Any message may contain a shorter text. */
const QUOTED_CHARS = 8

function repeats({ error }: SeenFailure, { error: other }: SeenFailure): boolean {
  return [error, ...error.causes].some(({ type, message }) => {
    if (other.message === null) return other.type !== null && message === null && type === other.type
    if (message === null) return false
    const isSame = message === other.message && (type === other.type || type === null || other.type === null)
    return isSame || (other.message.length >= QUOTED_CHARS && message.includes(other.message))
  })
}
