/** Source: docs/decisions/0071-estimated-costs.md. */
import { hash } from 'node:crypto'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Payload, ToolUse } from '../../storage/record/events.ts'
import { CALL_KEY_CHARS } from '../../storage/issues/loops.ts'
import { problemKind } from './prompt-use.ts'
import { isStorableText } from '../web/text.ts'

export function toolUseOf(eventType: string, payload: Payload): ToolUse | null {
  const isCall = eventType === 'TOOL_CALL'
  if (!isCall && eventType !== 'POLICY_DECISION') return null
  const problem = problemKind(eventType, payload)
  if (!isCall && problem === null) return null
  const { toolName } = payload
  const isName = typeof toolName === 'string' && toolName.length <= LIMITS.searchChars && isStorableText(toolName)
  return { tool: isName ? toolName : '', problem }
}

/** The same for equal calls of one tool in one run. */
export function callKeyOf(eventType: string, payload: Payload): string | null {
  if (eventType !== 'TOOL_CALL') return null
  const { toolName, inputHash, input = payload['arguments'] } = payload
  if (typeof toolName !== 'string') return null
  const of = typeof inputHash === 'string' ? inputHash : input === undefined ? null : JSON.stringify(input)
  return of === null ? null : hash('sha256', `${toolName}\0${of}`, 'base64url').slice(0, CALL_KEY_CHARS)
}
