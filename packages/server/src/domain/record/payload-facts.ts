/** Source: docs/decisions/0071-estimated-costs.md. */
import { hash } from 'node:crypto'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { isErrorEvent, cancellationOf, failureOf } from '@tacho/contract/issues/failure.ts'
import { HELD_BACK } from '@tacho/contract/runs/problem.ts'
import type { ProblemKind } from '@tacho/contract/engine/words.ts'
import type { RunOutcome } from '@tacho/contract/runs/run.ts'
import type { Payload, ToolUse, PromptUse } from '../../storage/record/events.ts'
import { CALL_KEY_CHARS } from '../../storage/issues/loops.ts'
import { isStorableText, hasAtMost } from '../web/text.ts'
import { traitLine, type TraitKind } from '../../storage/runs/runs.ts'
import { isUuid } from '../../storage/engine/uuid.ts'
import type { EventFailure } from '../../storage/record/failure.ts'

export function toolUseOf(eventType: string, payload: Payload): ToolUse | null {
  const isCall = eventType === 'TOOL_CALL'
  if (!isCall && eventType !== 'POLICY_DECISION') return null
  const problem = problemKind(eventType, payload)
  if (!isCall && problem === null) return null
  const { toolName } = payload
  const isName = typeof toolName === 'string' && toolName.length <= LIMITS.searchChars && isStorableText(toolName)
  return { tool: isName ? toolName : '', problem }
}

/** The same for equal calls of one tool in one run. A call that a person declined is no failure of the agent. */
export function callKeyOf(eventType: string, payload: Payload): string | null {
  if (eventType !== 'TOOL_CALL' || payload['reasonCode'] === 'declined') return null
  const { toolName, inputHash, input = payload['arguments'] } = payload
  if (typeof toolName !== 'string') return null
  const of = typeof inputHash === 'string' ? inputHash : input === undefined ? null : JSON.stringify(input)
  return of === null ? null : hash('sha256', `${toolName}\0${of}`, 'base64url').slice(0, CALL_KEY_CHARS)
}

/** Source: docs/decisions/0132-runs-in-another-order.md. */

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

/** Source: docs/decisions/0071-estimated-costs.md. */

export function promptUseOf(eventType: string, payload: Payload): PromptUse | null {
  const id = payload['promptVersionId']
  if (typeof id !== 'string' || !isUuid(id)) return null
  return { versionId: id.toLowerCase(), problem: problemKind(eventType, payload) }
}

function problemKind(eventType: string, payload: Payload): ProblemKind | null {
  if (eventType === 'POLICY_DECISION') return HELD_BACK.get(payload['action']) ?? null
  return isErrorEvent(eventType, payload) ? 'error' : null
}

/** Source: docs/decisions/0106-issues-from-what-fails.md. */

export function eventFailure(
  eventType: string,
  label: string,
  payload: Record<string, unknown>,
  outcome: RunOutcome | null,
): EventFailure | null {
  const isError = isErrorEvent(eventType, payload)
  if (!isError && outcome !== 'CANCELLED') return null
  const event = { eventType, label, payload }
  const failure = isError ? failureOf(event) : cancellationOf(event)
  return failure && { errorClass: failure.errorClass, message: failure.message, place: failure.place }
}
