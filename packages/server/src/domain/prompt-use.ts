/** Which prompt version an event names, and what went wrong in it. Source: decision "Prompt results" in docs/decisions. */
import type { Problem, PromptUse } from '../storage/events.ts'
import { isErrorEvent } from '@tacho/contract/failure.ts'

type Payload = Record<string, unknown>

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const HELD_BACK = new Map<unknown, Problem>([
  ['BLOCK', 'blocked'],
  ['REQUIRE_APPROVAL', 'approval'],
])

export function promptUseOf(eventType: string, payload: Payload): PromptUse | null {
  const id = payload['promptVersionId']
  if (typeof id !== 'string' || !UUID.test(id)) return null
  return { versionId: id.toLowerCase(), problem: problemOf(eventType, payload) }
}

export function problemOf(eventType: string, payload: Payload): Problem | null {
  if (eventType === 'POLICY_DECISION') return HELD_BACK.get(payload['action']) ?? null
  return isErrorEvent(eventType, payload) ? 'error' : null
}
