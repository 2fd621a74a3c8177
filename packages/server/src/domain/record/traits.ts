/** Source: docs/decisions/0132-runs-in-another-order.md. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import type { Payload, PromptUse } from '../../storage/record/events.ts'
import { traitLine, type TraitKind } from '../../storage/runs/traits.ts'
import { hasAtMost, isStorableText } from '../web/text.ts'

export function traitsOf(eventType: string, payload: Payload, promptUse: PromptUse | null): string | null {
  const lines = [line('prompt', promptUse?.versionId)]
  if (eventType === 'TOOL_CALL') lines.push(line('tool', payload['toolName']))
  if (eventType === 'LLM_CALL') lines.push(line('model', payload['model']))
  if (eventType === 'POLICY_DECISION' && Array.isArray(payload['policyIds'])) {
    lines.push(...payload['policyIds'].slice(0, POLICIES_PER_EVENT).map((id) => line('policy', id)))
  }
  const { runTags, runMetadata } = payload
  if (Array.isArray(runTags)) lines.push(...runTags.slice(0, LIMITS.runTags).map((tag) => line('tag', tag)))
  if (isObject(runMetadata)) {
    lines.push(...Object.entries(runMetadata).slice(0, LIMITS.runMetadataKeys).map(metadataLine))
  }
  const text = lines.join('')
  return text === '' ? null : text
}

const POLICIES_PER_EVENT = 20

function line(kind: TraitKind, name: unknown): string {
  const isKept = typeof name === 'string' && name !== '' && name.length <= LIMITS.searchChars && isStorableText(name)
  return isKept ? traitLine(kind, name) : ''
}

/** A filter separates key and value at the first `=`. */
function metadataLine([key, value]: [string, unknown]): string {
  const isPlain = ['string', 'number', 'boolean'].includes(typeof value)
  return isPlain && key !== '' && !key.includes('=') ? line('meta', `${key}=${String(value)}`) : ''
}

/** The end user for whom the agent works, as the program names it. */
export function userIdOf({ userId }: Payload): string | null {
  const text = typeof userId === 'number' && Number.isSafeInteger(userId) ? String(userId) : userId
  const isKept = typeof text === 'string' && text !== '' && isStorableText(text) && hasAtMost(text, LIMITS.textChars)
  return isKept ? text : null
}
