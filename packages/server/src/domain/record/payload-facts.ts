/** Source: docs/decisions/0071-estimated-costs.md. */
import { hash } from 'node:crypto'
import type { TSchema } from 'typebox'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { isErrorEvent, cancellationOf, failureOf } from '@tacho/contract/issues/failure.ts'
import { HELD_BACK } from '@tacho/contract/runs/problem.ts'
import { type ProblemKind, RUN_OUTCOMES } from '@tacho/contract/engine/words.ts'
import { inputText } from '@tacho/policy/input/input-text.ts'
import type { RunOutcome } from '@tacho/contract/runs/run.ts'
import type { WarningCode } from '@tacho/contract/web/errors.ts'
import type { Warning } from '@tacho/contract/record/event.ts'
import { PAYLOADS } from '@tacho/contract/record/payload.ts'
import type { Payload, ToolUse, PromptUse } from '../../storage/record/events.ts'
import { CALL_KEY_CHARS } from '../../storage/issues/issues.ts'
import { isStorableText, hasAtMost } from '../web/text.ts'
import { traitLine, type TraitKind } from '../../storage/runs/runs.ts'
import { isUuid } from '../../storage/engine/uuid.ts'
import type { EventFailure } from '../../storage/record/failure.ts'
import { scoreFaults } from '../runs/score.ts'
import { schemaFaults, validatorOf } from '../web/schema-faults.ts'
import { outcomeOf, uncounted } from './usage.ts'

export function toolUseOf(eventType: string, payload: Payload): ToolUse | null {
  const isCall = eventType === 'TOOL_CALL'
  if (!isCall && eventType !== 'POLICY_DECISION') return null
  const problem = problemKind(eventType, payload)
  if (!isCall && problem === null) return null
  const { toolName } = payload
  const isName = typeof toolName === 'string' && toolName.length <= LIMITS.searchChars && isStorableText(toolName)
  return { tool: isName ? toolName : '', problem }
}

/**
 * A hash that is the same for equal calls of one tool in one run. Null for a call that a person declined, because that
 * is no failure of the agent.
 */
export function callKeyOf(eventType: string, payload: Payload): string | null {
  if (eventType !== 'TOOL_CALL' || payload['reasonCode'] === 'declined') return null
  const { toolName, inputHash, input = payload['arguments'] } = payload
  if (typeof toolName !== 'string') return null
  const of = typeof inputHash === 'string' ? inputHash : input === undefined ? null : canonicalText(toolName, input)
  return of === null ? null : hash('sha256', `${toolName}\0${of}`, 'base64url').slice(0, CALL_KEY_CHARS)
}

/**
 * Canonical, because members of equal inputs may come in another order. A lone surrogate or a too deep input has no
 * canonical text.
 */
function canonicalText(toolName: string, input: unknown): string {
  try {
    return inputText(toolName, input)
  } catch {
    return JSON.stringify(input)
  }
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

/** The end user for whom the agent works, as the program reports it. */
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

/** Warnings for payloads that are stored but not understood. Messages name fields and rules, never a value of the payload. */

type PayloadWarning = Pick<Warning, 'code' | 'message'>

const OWN_RULES = /^\/(?:usage|cost|status|name|value|targetEventId|author)\b/

const ITEMS_LOOKED_AT = 20

const conventions = new Map<string, TSchema>(Object.entries(PAYLOADS))

export function payloadWarnings(eventType: string, payload: Payload): PayloadWarning[] {
  const schema = conventions.get(eventType)
  if (schema === undefined) return []
  const warnings: PayloadWarning[] = []
  const warn = (code: WarningCode, faults: string[]): void => {
    if (faults.length > 0) warnings.push({ code, message: faults.map((fault) => `payload/${fault}`).join('; ') })
  }
  if (eventType === 'LLM_CALL') {
    const { usage, cost } = uncounted(payload)
    warn('usage_not_counted', usage)
    warn('cost_not_counted', cost)
  }
  if (eventType === 'SESSION_OUTCOME' && outcomeOf(eventType, payload) === null) {
    warn('outcome_not_understood', [`status must be one of ${RUN_OUTCOMES.join(', ')} to close the run`])
  }
  if (eventType === 'SCORE') warn('score_not_understood', scoreFaults(payload))
  warn('payload_not_understood', brokenConventions(schema, payload))
  return warnings
}

function brokenConventions(schema: TSchema, payload: Payload): string[] {
  const validator = validatorOf(schema)
  if (validator.Check(payload)) return []
  const looked = beginning(payload, schema)
  const faults = schemaFaults(schema, validator.Errors(looked))
  if (faults.length === 0) {
    const cut = Object.keys(looked).filter((name) => looked[name] !== payload[name])
    return cut.map((name) => `${name} has an item of the wrong type`)
  }
  return faults
    .filter(({ path }) => !OWN_RULES.test(path) && !isNull(payload, path))
    .map(({ path, message }) => `${path.slice(1)} ${message}`)
}

/** The payload with only the first items of its lists, because reporting faults takes time for each item. */
function beginning(payload: Payload, schema: TSchema): Payload {
  const names = Object.keys((schema as { properties?: object }).properties ?? {}).filter((name) =>
    Object.hasOwn(payload, name),
  )
  return Object.fromEntries(
    names.map((name) => {
      const value = payload[name]
      return [name, Array.isArray(value) && value.length > ITEMS_LOOKED_AT ? value.slice(0, ITEMS_LOOKED_AT) : value]
    }),
  )
}

/** Many clients send null for unknown values. */
function isNull(payload: Payload, path: string): boolean {
  const [name = '', ...innerPath] = path.slice(1).split('/')
  return innerPath.length === 0 && Object.hasOwn(payload, name) && payload[name] === null
}
