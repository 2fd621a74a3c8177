/** Source: docs/decisions/0071-estimated-costs.md. */
import { isErrorEvent } from '@tacho/contract/issues/failure.ts'
import { HELD_BACK } from '@tacho/contract/runs/problem.ts'
import type { ProblemKind } from '@tacho/contract/engine/words.ts'
import type { Payload, PromptUse } from '../../storage/record/events.ts'
import { isUuid } from '../../storage/engine/uuid.ts'

export function promptUseOf(eventType: string, payload: Payload): PromptUse | null {
  const id = payload['promptVersionId']
  if (typeof id !== 'string' || !isUuid(id)) return null
  return { versionId: id.toLowerCase(), problem: problemKind(eventType, payload) }
}

export function problemKind(eventType: string, payload: Payload): ProblemKind | null {
  if (eventType === 'POLICY_DECISION') return HELD_BACK.get(payload['action']) ?? null
  return isErrorEvent(eventType, payload) ? 'error' : null
}
