/** Source: docs/decisions/0071-estimated-costs.md. */
import { LIMITS } from '@tacho/contract/limits.ts'
import type { Payload, ToolUse } from '../storage/events.ts'
import { problemKind } from './prompt-use.ts'
import { isStorableText } from './text.ts'

export function toolUseOf(eventType: string, payload: Payload): ToolUse | null {
  const isCall = eventType === 'TOOL_CALL'
  if (!isCall && eventType !== 'POLICY_DECISION') return null
  const problem = problemKind(eventType, payload)
  if (!isCall && problem === null) return null
  const { toolName } = payload
  const isName = typeof toolName === 'string' && toolName.length <= LIMITS.searchChars && isStorableText(toolName)
  return { tool: isName ? toolName : '', problem }
}
