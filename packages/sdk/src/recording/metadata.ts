/** Selects the parts of a payload that metadata-only keeps. Loaded with writing.ts, in a bundle of its own. */
import { fieldsOf } from './json.ts'

/** Their values are not content. Other keys are dropped. */
const METADATA_KEYS: ReadonlySet<string> = new Set(
  (
    'model provider latency timeToFirstOutput cost notCounted finishReason status code reasonCode attempt toolName tools ' +
    'inputHash approvalId action decision policyId policyIds riskSignals severity promptId promptVersionId sampleRate ' +
    'revision release detections inputProblem startEventId traceId traceSpanId toolCallId agent policyAgeMs ' +
    'promptFallback'
  ).split(' '),
)
/** Members of one type of event: in others, the same words can hold content. */
const OF_TYPE =
  /^(?:SCORE (?:name|value|targetEventId|author)|TOOL_CALL outcome|APPROVAL_WITHDRAWN reason|HANDOFF (?:from|to))$/
/** A longer text counts as content under any key. */
const METADATA_CHARS = 256

/** @param named stands for an error. @param type of the event. */
export function metadataOf(facts: unknown, metadataKeys: ReadonlySet<string>, named: string, type?: string): object {
  const keptPairs: [string, unknown][] = []
  for (const [key, value] of fieldsOf(facts)) {
    if (metadataKeys.has(key)) keptPairs.push([key, value])
    else if ((METADATA_KEYS.has(key) || OF_TYPE.test(`${type} ${key}`)) && isMetadata(value))
      keptPairs.push([key, value])
    // Keep which conditions failed, and why: the message quotes the condition, never a fact. Keep calls without arguments.
    else if (/^(?:failures|toolCalls)$/.test(key) && Array.isArray(value))
      keptPairs.push([key, value.slice(0, 100).map(factsOf)])
    else if (key === 'exception') keptPairs.push([key, classesOf(value)])
    else if (key === 'usage') keptPairs.push([key, numbersOf(value)])
    else if (key === 'error' && value !== undefined) keptPairs.push([key, named])
  }
  return Object.fromEntries(keptPairs)
}

function classesOf(exception: unknown): Record<string, unknown> {
  const { type, code, status, causes } = (exception ?? {}) as Record<string, unknown>
  return { type, code, status, ...(Array.isArray(causes) && { causes: causes.map(classesOf) }) }
}

function factsOf(item: unknown): Record<string, unknown> {
  return Object.fromEntries(
    fieldsOf(item).filter(([key, value]) => /^(?:policyId|message|id|name|problem)$/.test(key) && isMetadata(value)),
  )
}

function isMetadata(value: unknown): boolean {
  if (typeof value === 'string') return value.length <= METADATA_CHARS
  if (Array.isArray(value))
    return value.length <= 100 && value.every((item) => typeof item === 'string' && isMetadata(item))
  return typeof value === 'number' || typeof value === 'boolean'
}

/** Includes one level of details. */
function numbersOf(usage: unknown, levels = 2): Record<string, unknown> {
  const keptPairs: [string, unknown][] = []
  for (const [key, value] of fieldsOf(usage)) {
    if (typeof value === 'number') keptPairs.push([key, value])
    else if (typeof value === 'object' && levels > 1) keptPairs.push([key, numbersOf(value, levels - 1)])
  }
  return Object.fromEntries(keptPairs)
}
