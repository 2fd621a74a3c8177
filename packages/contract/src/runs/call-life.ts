/**
 * The states of a tool call, from the events of its run. The service, the console and the commands read them here.
 *
 *   asked ─┬─> never_ran                 cut, unreadable, unknown_tool, unfit; declined is no failure
 *          └─> judged ─┬─> blocked
 *                      ├─> held ─┬─> rejected, expired, withdrawn
 *                      │         └─> approved ─┐
 *                      └───────────────────────┴─> running ─> returned, failed, cancelled, did_not_report
 *
 * Each event shows one state. The approval of a held call shows its result.
 */
import { isObject, textAt, type Json } from '../record/payload-reader.ts'

export const CALL_OUTCOMES = ['returned', 'failed', 'cancelled', 'never_ran', 'did_not_report'] as const
export type CallOutcome = (typeof CALL_OUTCOMES)[number]

export type CallState = 'asked' | 'judged' | 'blocked' | 'held' | 'withdrawn' | 'handed_off' | 'running' | CallOutcome

/** Texts by the reason code of a call that never ran. */
const NEVER_RAN = new Map<unknown, string>([
  ['cut', 'the answer of the model was cut'],
  ['unreadable', 'its arguments cannot be read'],
  ['unknown_tool', 'unknown tool'],
  ['unfit', 'its arguments do not fit the tool'],
  ['declined', 'declined'],
])

/** Why a call never ran, as text. An unknown code stays as it is. */
export const reasonText = (code: string): string => NEVER_RAN.get(code) ?? code

/** How a TOOL_CALL ended. Older clients do not report it; for them, an error counts as a failure. */
export function callOutcome(payload: Json): CallOutcome {
  const outcome = CALL_OUTCOMES.find((one) => one === payload['outcome'])
  return outcome ?? (isSet(payload['error']) || isSet(payload['exception']) ? 'failed' : 'returned')
}

const isSet = (value: unknown) => value !== undefined && value !== null && value !== false

/** Cancelled and declined calls are no failures, and one that did not report may have worked. */
export function isFailedCall(payload: Json): boolean {
  const outcome = callOutcome(payload)
  return outcome === 'failed' || (outcome === 'never_ran' && payload['reasonCode'] !== 'declined')
}

/** Why a call never ran, as its client reports it. Null: it ran, or the client does not report it. */
export function neverRanCode(payload: Json): string | null {
  const code = callOutcome(payload) === 'never_ran' ? payload['reasonCode'] : undefined
  return typeof code === 'string' && NEVER_RAN.has(code) ? code : null
}

/** How a call ended, as text: `never ran: unknown tool`. */
export function outcomeText(payload: Json): string {
  const outcome = callOutcome(payload)
  if (outcome !== 'never_ran') return outcome.replaceAll('_', ' ').replace('report', 'report back')
  const why = NEVER_RAN.get(payload['reasonCode'])
  return why === undefined ? 'never ran' : `never ran: ${why}`
}

/** The note for a list about a TOOL_CALL that neither returned nor failed; null for others. */
export function unusualEnd(eventType: string, payload: Json): string | null {
  if (eventType !== 'TOOL_CALL') return null
  const outcome = callOutcome(payload)
  return outcome === 'returned' || outcome === 'failed' ? null : outcomeText(payload)
}

/** A call that a model asked for. */
export interface AskedCall {
  id: string | null
  name: string
  /** The text as received, if it is not JSON or the model's answer was cut. */
  arguments: string | null
  problem: string | null
}

const ASKED_MAX = 100

export function askedCalls(payload: Json): AskedCall[] {
  const { toolCalls } = payload
  if (!Array.isArray(toolCalls)) return []
  return toolCalls
    .slice(0, ASKED_MAX)
    .filter(isObject)
    .map((call) => ({
      id: textAt(call, 'id'),
      name: textAt(call, 'name') ?? 'tool',
      arguments: textAt(call, 'arguments'),
      problem: textAt(call, 'problem'),
    }))
}

export interface CallEvent {
  eventId: string
  eventType: string
  payload: Json
}

/** Event types that name a call by the model's id. */
export const CALL_EVENTS: ReadonlySet<string> = new Set([
  'LLM_CALL',
  'TOOL_START',
  'TOOL_CALL',
  'POLICY_DECISION',
  'APPROVAL_WITHDRAWN',
  'HANDOFF',
])

/** The state of the call with this id that an event shows; null: the event is about something else. */
export function callState({ eventType, payload }: Omit<CallEvent, 'eventId'>, toolCallId: string): CallState | null {
  if (eventType === 'LLM_CALL') return askedCalls(payload).some(({ id }) => id === toolCallId) ? 'asked' : null
  if (!CALL_EVENTS.has(eventType) || payload['toolCallId'] !== toolCallId) return null
  if (eventType === 'TOOL_CALL') return callOutcome(payload)
  if (eventType === 'TOOL_START') return 'running'
  if (eventType === 'APPROVAL_WITHDRAWN') return 'withdrawn'
  if (eventType === 'HANDOFF') return 'handed_off'
  const { action } = payload
  return action === 'BLOCK' ? 'blocked' : action === 'REQUIRE_APPROVAL' ? 'held' : 'judged'
}

/**
 * The events of the call that `eventId` is about, in the given order, which must be that of time. Several model calls
 * may use the same id. An event then belongs to the nearest of them before it.
 */
export function callLife<Event extends CallEvent>(
  events: readonly Event[],
  toolCallId: string,
  eventId: string,
): { event: Event; state: CallState }[] {
  let life: { event: Event; state: CallState }[] = []
  let isIn = false
  for (const event of events) {
    const state = callState(event, toolCallId)
    if (state === null) continue
    if (state === 'asked') {
      if (isIn) return life
      life = []
    }
    life.push({ event, state })
    isIn ||= event.eventId === eventId
  }
  return isIn ? life : []
}
