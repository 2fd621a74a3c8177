/** Turns a host value into a payload's JSON text: reduced to metadata if configured, masked, bounded. */
import type { Diagnostics } from './diagnostics.ts'
import { exceptionOf } from './exception.ts'
import { errorText, fieldsOf, joined, jsonText, readSafely, type JsonObject } from './json.ts'
import { LIMITS } from './limits.ts'
import type { Mask } from './mask.ts'
import type { Settings } from './options.ts'
import { shorten } from './shorten.ts'
import { byteLength } from './text.ts'

export type Payload = Readonly<Record<string, unknown>>

/** Keys whose values are not content. Prompts, messages, inputs, outputs and unknown keys are dropped. */
const METADATA_KEYS: ReadonlySet<string> = new Set(
  (
    'model provider latency timeToFirstOutput cost finishReason status code reasonCode attempt toolName tools ' +
    'inputHash approvalId action decision policyId policyIds riskSignals severity promptId promptVersionId sampleRate ' +
    'revision detections inputProblem startEventId'
  ).split(' '),
)
/** A longer text counts as content under any key. */
const METADATA_CHARS = 256
/** How JSON.stringify begins half a surrogate pair. */
const HALF_PAIR = '\\ud'
/** An escape in JSON text; the second character may be a backslash itself. */
const ESCAPE = /\\(?:u.{4}|.)/g

/** `maxBytes`: default and most 256 KiB. */
export type PayloadWriter = (payload: Payload | undefined, maxBytes?: number) => string

/** Never throws. If masking fails, nothing of the payload is recorded. */
export function createPayloadWriter(
  { capture, metadataKeys }: Pick<Settings, 'capture' | 'metadataKeys'>,
  mask: Mask,
  diagnostics: Diagnostics,
): PayloadWriter {
  return function writePayload(payload, maxBytes = LIMITS.payloadBytes) {
    // Untyped hosts may pass anything.
    if (payload === undefined || payload === null) return '{}'
    const { text: whole, isCut } = jsonText(chosen(payload), LIMITS.payloadDepthLevels)
    let text = whole
    if (text.includes(HALF_PAIR)) {
      text = text.replace(ESCAPE, (escape) => (escape.startsWith(HALF_PAIR) ? '\ufffd' : escape))
    }
    try {
      text = mask.json(text)
    } catch {
      diagnostics.report('error', 'masking_failed', 'Masking failed: the payload was dropped.')
      return '{"masked":"[masked:error]"}'
    }
    // A UTF-16 unit has at most three bytes, so most texts need no byte count.
    if (!isCut && text.length * 3 <= maxBytes) return text
    const bytes = byteLength(text)
    if (!isCut && bytes <= maxBytes) return text
    diagnostics.count('shortened')
    diagnostics.report('warning', 'payload_shortened', `A payload of ${bytes} bytes was shortened to ${maxBytes}.`)
    return shorten(JSON.parse(text) as JsonObject, bytes, maxBytes)
  }

  function chosen(payload: Payload): unknown {
    const { error } = payload
    // A thrown value may be a Proxy, or have getters that throw.
    const isThrown = readSafely(() => error instanceof Error, true)
    const facts = isThrown
      ? joined(payload, { error: errorText(error), exception: payload['exception'] ?? exceptionOf(error) })
      : payload
    if (capture === 'full') return facts
    const kept: [string, unknown][] = []
    for (const [key, value] of fieldsOf(facts)) {
      if (metadataKeys.has(key)) kept.push([key, value])
      else if (METADATA_KEYS.has(key) && isMetadata(value)) kept.push([key, value])
      // Which conditions failed, and why: the message quotes the condition, never a fact.
      else if (key === 'failures' && Array.isArray(value)) kept.push([key, value.slice(0, 100).map(failureOf)])
      else if (key === 'exception') kept.push([key, classesOf(value)])
      else if (key === 'usage') kept.push([key, numbersOf(value)])
      // Error messages quote their input; the error's class does not.
      else if (key === 'error' && value !== undefined) kept.push([key, isThrown ? nameOf(error) : '[left out]'])
    }
    return Object.fromEntries(kept)
  }
}

/** The class of an error; its message could quote content. */
export function nameOf(error: unknown): string {
  return readSafely(() => String((error as Error).name), 'unreadable error')
}

/** The classes of an error and of its causes. */
function classesOf(exception: unknown): Record<string, unknown> {
  const { type, causes } = (exception ?? {}) as { type?: unknown; causes?: unknown }
  return { type, ...(Array.isArray(causes) && { causes: causes.map(classesOf) }) }
}

function failureOf(failure: unknown): Record<string, unknown> {
  return Object.fromEntries(
    fieldsOf(failure).filter(([key, value]) => /^(?:policyId|message)$/.test(key) && isMetadata(value)),
  )
}

function isMetadata(value: unknown): boolean {
  if (typeof value === 'string') return value.length <= METADATA_CHARS
  if (Array.isArray(value))
    return value.length <= 100 && value.every((item) => typeof item === 'string' && isMetadata(item))
  return typeof value === 'number' || typeof value === 'boolean'
}

/** The numbers of a usage object, including one level of details. */
function numbersOf(usage: unknown, levels = 2): Record<string, unknown> {
  const kept: [string, unknown][] = []
  for (const [key, value] of fieldsOf(usage)) {
    if (typeof value === 'number') kept.push([key, value])
    else if (typeof value === 'object' && levels > 1) kept.push([key, numbersOf(value, levels - 1)])
  }
  return Object.fromEntries(kept)
}
