/** Source: docs/decisions/0132-runs-in-another-order.md. */
import { LIMITS } from '@tacho/contract/limits.ts'
import type { Payload, PromptUse } from '../storage/events.ts'
import { traitLine, type TraitKind } from '../storage/traits.ts'
import { isStorableText } from './text.ts'

export function traitsOf(eventType: string, payload: Payload, promptUse: PromptUse | null): string | null {
  const lines = [line('prompt', promptUse?.versionId)]
  if (eventType === 'TOOL_CALL') lines.push(line('tool', payload['toolName']))
  if (eventType === 'LLM_CALL') lines.push(line('model', payload['model']))
  if (eventType === 'POLICY_DECISION' && Array.isArray(payload['policyIds'])) {
    lines.push(...payload['policyIds'].slice(0, POLICIES_PER_EVENT).map((id) => line('policy', id)))
  }
  const text = lines.join('')
  return text === '' ? null : text
}

const POLICIES_PER_EVENT = 20

function line(kind: TraitKind, name: unknown): string {
  const isKept = typeof name === 'string' && name !== '' && name.length <= LIMITS.searchChars && isStorableText(name)
  return isKept ? traitLine(kind, name) : ''
}
