/** Why a person should look at an event: it tells an error, or a policy held a call back. In words and one line. */
import { failureLine, failureOf, type ToldEvent } from './failure.ts'
import { inShort, textAt, type Json } from './read-payload.ts'
import { decisionReason } from './told-call.ts'
import type { ProblemKind } from './words.ts'

export interface ToldProblem {
  kind: ProblemKind
  /** What failed or was held back: the tool of a decision, else the label of the event. */
  name: string
  /** Why, in one line. Empty: the event does not say. */
  why: string
}

/** Null: nothing is wrong with it. */
export function problemOf(event: ToldEvent): ToldProblem | null {
  const { eventType, label, payload } = event
  if (eventType === 'POLICY_DECISION') {
    const kind = HELD_BACK.get(payload['action'])
    return kind === undefined
      ? null
      : { kind, name: inShort(textAt(payload, 'toolName') ?? label), why: reasonOf(payload) }
  }
  const failure = failureOf(event)
  if (failure === null) return null
  const line = failureLine(failure, null)
  return { kind: 'error', name: label, why: eventType === 'ERROR' && line === label ? '' : line }
}

/** By the action of a decision. */
export const HELD_BACK = new Map<unknown, ProblemKind>([
  ['BLOCK', 'blocked'],
  ['REQUIRE_APPROVAL', 'approval'],
])

/** Which policies held a call back, and why. */
function reasonOf(payload: Json): string {
  const { policyIds } = payload
  const ids = Array.isArray(policyIds) ? policyIds.filter((id) => typeof id === 'string') : []
  const by = ids.length === 0 ? '' : inShort(`by ${ids.join(', ')}`)
  return [by, inShort(decisionReason(payload))].filter((part) => part !== '').join(': ')
}
