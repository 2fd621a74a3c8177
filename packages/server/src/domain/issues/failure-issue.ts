/** Facts depend only on the failure. Only if there are too many failures, the store uses broader facts. */
import { hash } from 'node:crypto'
import type { Facts } from '@tacho/contract/issues/issue.ts'
import { ownFrame } from '@tacho/contract/issues/stack-frame.ts'
import { failureOf, type Failure } from '@tacho/contract/issues/failure.ts'
import { canonicalFacts, type Grouping, releaseOf } from './issue.ts'
import { messageTemplate, VARIABLE } from './message-template.ts'
import type { Payload, StoredEvent } from '../../storage/record/events.ts'
import { promptUseOf } from '../record/payload-facts.ts'

/** Increase this when the hash input changes, so that old fingerprints stay valid. */
const VERSION = 'v3'
/** Characters of the hash: enough that two places of one environment hardly ever collide. */
const FAMILY_CHARS = 16
const FACT_CHARS = 200
const TITLE_CHARS = 200

const KINDS = {
  RUN_FAILED: 'runs',
  TOOL_FAILED: 'tools',
  MODEL_FAILED: 'models',
  STEP_FAILED: 'steps',
  ERROR_RECORDED: 'errors',
  RUN_STALLED: 'silent runs',
  DECISION_DIFFERS: 'decisions derived again',
}
export type FailureKind = keyof typeof KINDS

export interface SeenFailure {
  kind: FailureKind
  agent: string
  toolName: string | null
  model: string | null
  policyId?: string
  error: SeenError
}

interface SeenError {
  type: string | null
  message: string | null
  stack: string | null
  causes: readonly { type: string | null; message: string | null }[]
}

interface FailureGrouping extends Grouping {
  /** Broader groups, for one place whose messages vary too much. */
  place: Grouping
  kind: Grouping
  /** Prefix of all fingerprints of the place. */
  family: string
}

/**
 * Source: docs/decisions/0106-issues-from-what-fails.md. A failure without a place and without an error belongs to its
 * agent.
 */
export function failureGrouping({ kind, agent, toolName, model, policyId, error }: SeenFailure): FailureGrouping {
  const root = error.causes.at(-1)
  const failureTexts = {
    detectionType: kind.toLowerCase(),
    errorType: error.type,
    cause: root ? [root.type, template(root.message)].filter(Boolean).join(': ') : null,
    frame: error.stack === null ? null : ownFrame(error.stack),
    message: template(error.message),
    model,
    policyId: policyId ?? null,
    toolName,
  }
  const isBare = error.type === null && failureTexts.message === null && toolName === null && model === null
  const isAnywhere = toolName === null && model === null && failureTexts.frame === null
  const { detectionType } = failureTexts
  const facts = factsOf({ ...failureTexts, agent: isBare ? agent : null })
  const place = factsOf({ ...failureTexts, cause: null, message: VARIABLE, agent: isAnywhere ? agent : null })
  const family = familyOf(place)
  return {
    ...grouping(facts, family),
    place: grouping(place, family),
    kind: grouping({ detectionType }, familyOf({ detectionType })),
    family,
  }
}

function factsOf(failureTexts: Partial<Record<keyof Facts, string | null>>): Facts {
  const all = Object.entries(failureTexts)
  return Object.fromEntries(all.flatMap(([name, value]) => (value ? [[name, shortened(value, FACT_CHARS)]] : [])))
}

const familyOf = (place: Facts): string => `${VERSION}:${hash('sha256', canonicalFacts(place)).slice(0, FAMILY_CHARS)}:`

const grouping = (facts: Facts, family: string): Grouping => ({
  facts,
  fingerprint: `${family}${hash('sha256', canonicalFacts(facts))}`,
})

function template(message: string | null): string | null {
  return message === null ? null : messageTemplate(message) || null
}

/** `TimeoutError in get_order: no answer after …`. Facts have only the agent's id, so its name is passed. */
export function failureTitle(
  { detectionType, errorType, toolName, model, frame, message, cause, agent }: Facts,
  agentName: string,
): string {
  if (detectionType === 'decision_differs') {
    return shortened(`Decision on ${toolName ?? 'many tools'} differs: ${message ?? ''}`, TITLE_CHARS)
  }
  if (agent !== undefined && message === undefined) {
    const stalled = detectionType === 'run_stalled' ? 'went silent: no event and no end' : 'failed without an error'
    return shortened(`${agentName} ${stalled}`, TITLE_CHARS)
  }
  const type = errorType?.split('.').at(-1)
  const where = toolName ?? frame ?? (agent === undefined ? undefined : agentName)
  const place =
    model !== undefined && toolName === undefined ? ` from ${model}` : where === undefined ? '' : ` in ${where}`
  const subject = toolName ?? model ?? frame
  const what = type !== undefined ? `${type}${place}` : subject ? `${subject} failed` : `Error${place}`
  const [text, root] = [spoken(message), spoken(cause)]
  const why = text === null || root === null ? (text ?? root) : `${text} (${root})`
  return shortened(why === null ? what : `${what}: ${why}`, TITLE_CHARS)
}

export const placeTitle = ({ place }: FailureGrouping, agentName: string): string =>
  failureTitle({ ...place.facts, message: 'many different messages' }, agentName)

export const kindTitle = (kind: FailureKind): string => `Many different failures of ${KINDS[kind]}`

function spoken(template: string | undefined): string | null {
  const text = template?.replaceAll(/…[….]+/g, '…').replace(/: …$/, '')
  return text === undefined || text === '…' ? null : text
}

function shortened(text: string, chars: number): string {
  const line = text.toWellFormed().replaceAll(/\s+/g, ' ').trim()
  return line.length <= chars ? line : `${line.slice(0, chars - 1).toWellFormed()}…`
}

/** An error that passes through a tool, its step and the run is one failure: that of the most precise event. */

export interface FailedEvent {
  event: StoredEvent
  failure: SeenFailure
  release: string | null
  promptVersionId: string | null
}

export interface ToldFailure extends FailedEvent {
  rank: number
  isBare: boolean
  /** A command with an exit code other than 0: usual for a coding agent (docs/decisions/0106-issues-from-what-fails.md). */
  isCommand: boolean
}

/** `failures`: all failures of the events that were read. */
export function isCounted(one: ToldFailure, failures: readonly ToldFailure[]): boolean {
  if (ofPolicy(one) || one.isCommand) return false
  if (one.isBare) return !failures.some((other) => other !== one && other.event.eventType !== one.event.eventType)
  return !failures.some((other) => isMorePrecise(other, one) && repeats(one.failure, other.failure))
}

/** Most precise first. */
const RANKS = ['TOOL_CALL', 'LLM_CALL', 'ERROR', 'AGENT_STEP', 'AGENT_END', 'SESSION_OUTCOME']
const KIND_BY_EVENT = new Map<string, FailureKind>([
  ['TOOL_CALL', 'TOOL_FAILED'],
  ['LLM_CALL', 'MODEL_FAILED'],
  ['ERROR', 'ERROR_RECORDED'],
])

export function toldFailure(event: StoredEvent): ToldFailure | null {
  const { eventType, label } = event
  const payload = event.payload === '' ? null : (JSON.parse(event.payload) as Payload)
  const eventFailure = payload && failureOf({ eventType, label, payload })
  if (!eventFailure) return null
  const { place, errorClass: type, message, stack } = eventFailure
  const causes = eventFailure.causes.map((cause) => ({ type: cause.errorClass, message: cause.message }))
  const isStep = eventType === 'AGENT_STEP' && event.parentSpanId !== null
  return {
    event,
    failure: {
      kind: KIND_BY_EVENT.get(eventType) ?? (isStep ? 'STEP_FAILED' : 'RUN_FAILED'),
      agent: event.agentId ?? event.agentName,
      toolName: place.kind === 'tool' ? place.name : null,
      model: place.kind === 'model' ? place.name : null,
      error: { type, message: wholeMessage(payload, eventFailure), stack, causes },
    },
    release: releaseOf(payload),
    promptVersionId: promptUseOf(eventType, payload)?.versionId ?? null,
    rank: RANKS.indexOf(eventType),
    isCommand: eventType === 'TOOL_CALL' && Number.isInteger(payload['exitCode']) && payload['exitCode'] !== 0,
    isBare: type === null && message === null && RANKS.indexOf(eventType) > RANKS.indexOf('AGENT_STEP'),
  }
}

const MESSAGE_CHARS = 1_000

/** The whole message, because validation errors name the field after the first line. */
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

/** If two steps have the same error, the one that began last is inside the other. */
function isMorePrecise(other: ToldFailure, one: ToldFailure): boolean {
  if (other.rank !== one.rank) return other.rank < one.rank
  if (KIND_BY_EVENT.has(one.event.eventType)) return false
  return other.event.time > one.event.time || (other.event.time === one.event.time && other.event.seq > one.event.seq)
}

/** Shorter messages are not compared, because any message may contain them. */
const QUOTED_CHARS = 8

function repeats({ error }: SeenFailure, { error: other }: SeenFailure): boolean {
  return [error, ...error.causes].some(({ type, message }) => {
    if (other.message === null) return other.type !== null && message === null && type === other.type
    if (message === null) return false
    const isSame = message === other.message && (type === other.type || type === null || other.type === null)
    return isSame || (other.message.length >= QUOTED_CHARS && message.includes(other.message))
  })
}
