/** Source: docs/decisions/0068-prompt-results.md. */
import { isErrorEvent } from '@tacho/contract/failure.ts'
import { HELD_BACK } from '@tacho/contract/problem.ts'
import type { ProblemKind } from '@tacho/contract/words.ts'
import type { PromptUse } from '../storage/events.ts'

type Payload = Record<string, unknown>

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

export function promptUseOf(eventType: string, payload: Payload): PromptUse | null {
  const id = payload['promptVersionId']
  if (typeof id !== 'string' || !UUID.test(id)) return null
  return { versionId: id.toLowerCase(), problem: problemKind(eventType, payload) }
}

export function problemKind(eventType: string, payload: Payload): ProblemKind | null {
  if (eventType === 'POLICY_DECISION') return HELD_BACK.get(payload['action']) ?? null
  return isErrorEvent(eventType, payload) ? 'error' : null
}
