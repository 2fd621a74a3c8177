/** Reduced to metadata if configured. writing.ts makes the JSON text. */
import { exceptionOf } from './exception.ts'
import { errorText, fieldsOf, isError, joined, readSafely, snapshotOf } from './json.ts'
import { LIMITS } from './limits.ts'
import type { Settings } from './options.ts'
import type { Writing } from './writing.ts'

export type Payload = Readonly<Record<string, unknown>>

/** Their values are not content. Other keys are dropped. */
const METADATA_KEYS: ReadonlySet<string> = new Set(
  (
    'model provider latency timeToFirstOutput cost notCounted finishReason status code reasonCode attempt toolName tools ' +
    'inputHash approvalId action decision policyId policyIds riskSignals severity promptId promptVersionId sampleRate ' +
    'revision release detections inputProblem startEventId traceId traceSpanId toolCallId agent policyAgeMs ' +
    'promptFallback'
  ).split(' '),
)
/** Of one type of event: elsewhere, the same words can hold content. */
const OF_TYPE =
  /^(?:SCORE (?:name|value|targetEventId|author)|TOOL_CALL outcome|APPROVAL_WITHDRAWN reason|HANDOFF (?:from|to))$/
/** A longer text counts as content under any key. */
const METADATA_CHARS = 256
/** @internal */
export interface Captured {
  /** About as many as its JSON text has. */
  readonly bytes: number
  /** Masked and bounded. `maxBytes`: default and most 256 KiB. Never throws. */
  write(maxBytes?: number): string
}

/** @internal */
export type PayloadCapture = (payload: Payload | undefined, type?: string) => Captured

const EMPTY: Captured = { bytes: 2, write: () => '{}' }

/** @internal Captures at once, and masks later. */
export function createPayloadCapture(
  { capture, metadataKeys }: Pick<Settings, 'capture' | 'metadataKeys'>,
  writing: () => Writing,
): PayloadCapture {
  return function capturePayload(payload, type) {
    // Untyped hosts may pass anything.
    if (payload === undefined || payload === null) return EMPTY
    const snapshot = snapshotOf(chosen(payload, type), LIMITS.payloadDepthLevels)
    return { bytes: snapshot.bytes, write: (maxBytes) => writing().payload(snapshot.write(), maxBytes) }
  }

  function chosen(payload: Payload, type?: string): unknown {
    const { error } = payload
    // A thrown value may be a Proxy, or have getters that throw.
    const isThrown = readSafely(() => isError(error), true)
    const facts = isThrown
      ? joined(payload, { error: errorText(error), exception: payload['exception'] ?? exceptionOf(error) })
      : payload
    if (capture === 'full') return facts
    const kept: [string, unknown][] = []
    for (const [key, value] of fieldsOf(facts)) {
      if (metadataKeys.has(key)) kept.push([key, value])
      else if ((METADATA_KEYS.has(key) || OF_TYPE.test(`${type} ${key}`)) && isMetadata(value)) kept.push([key, value])
      // Which conditions failed, and why: the message quotes the condition, never a fact. Calls are kept without arguments.
      else if (/^(?:failures|toolCalls)$/.test(key) && Array.isArray(value))
        kept.push([key, value.slice(0, 100).map(factsOf)])
      else if (key === 'exception') kept.push([key, classesOf(value)])
      else if (key === 'usage') kept.push([key, numbersOf(value)])
      // Error messages quote their input; the error's class does not.
      else if (key === 'error' && value !== undefined) kept.push([key, isThrown ? nameOf(error) : '[left out]'])
    }
    return Object.fromEntries(kept)
  }
}

/** @internal An error's message could quote content. */
export function nameOf(error: unknown): string {
  return readSafely(() => String((error as Error).name), 'unreadable error')
}

function classesOf(exception: unknown): Record<string, unknown> {
  const { type, causes } = (exception ?? {}) as { type?: unknown; causes?: unknown }
  return { type, ...(Array.isArray(causes) && { causes: causes.map(classesOf) }) }
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
  const kept: [string, unknown][] = []
  for (const [key, value] of fieldsOf(usage)) {
    if (typeof value === 'number') kept.push([key, value])
    else if (typeof value === 'object' && levels > 1) kept.push([key, numbersOf(value, levels - 1)])
  }
  return Object.fromEntries(kept)
}
