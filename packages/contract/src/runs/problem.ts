/** Why a person should look at an event: it has an error, or a policy held a call back. As text in one line. */
import { callOutcome, outcomeText, type CallOutcome } from './call-life.ts'
import { failureLine, failureOf, type Failure, type ToldEvent } from '../issues/failure.ts'
import { inShort, textAt, type Json } from '../record/payload-reader.ts'
import { decisionReason } from './call-text.ts'
import type { ProblemKind } from '../engine/words.ts'

export interface ToldProblem {
  kind: ProblemKind
  /** Name of what failed or was held back: the tool of a decision, else the label of the event. */
  name: string
  /** The reason in one line. Empty: the event gives none. */
  why: string
  /** How the call ended; null: the event is not a call. */
  outcome: CallOutcome | null
}

/** Null: the event has no problem. */
export function problemOf(event: ToldEvent): ToldProblem | null {
  const { eventType, label, payload } = event
  if (eventType === 'POLICY_DECISION') {
    const kind = HELD_BACK.get(payload['action'])
    return kind === undefined
      ? null
      : { kind, name: inShort(textAt(payload, 'toolName') ?? label), why: reasonOf(payload), outcome: null }
  }
  const failure = failureOf(event)
  if (failure === null) return null
  const line = failureLine(failure, null)
  if (eventType !== 'TOOL_CALL')
    return { kind: 'error', name: label, why: eventType === 'ERROR' && line === label ? '' : line, outcome: null }
  const outcome = callOutcome(payload)
  return { kind: 'error', name: label, why: outcome === 'never_ran' ? whyNeverRan(payload, failure) : line, outcome }
}

function whyNeverRan(payload: Json, { message }: Failure): string {
  const reason = outcomeText(payload).replace(/^never ran(?:: )?/, '')
  return [reason, message ?? ''].filter((reasonPart) => reasonPart !== '').join(': ')
}

/** Kind of the problem, by the action of a decision. */
export const HELD_BACK = new Map<unknown, ProblemKind>([
  ['BLOCK', 'blocked'],
  ['REQUIRE_APPROVAL', 'approval'],
])

/** Names the policies that held a call back, and the reasons. */
function reasonOf(payload: Json): string {
  const { policyIds } = payload
  const ids = Array.isArray(policyIds) ? policyIds.filter((id) => typeof id === 'string') : []
  const by = ids.length === 0 ? '' : inShort(`by ${ids.join(', ')}`)
  return [by, inShort(decisionReason(payload))].filter((reasonPart) => reasonPart !== '').join(': ')
}
