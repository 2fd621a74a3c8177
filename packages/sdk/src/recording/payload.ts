/** Captures payloads, reduced to metadata if configured. writing.ts makes the JSON text. */
import { exceptionOf } from './exception.ts'
import { errorText, isError, joined, nameOf, readSafely, snapshotOf, type JsonText } from './json.ts'
import type { Captured, Payload } from './event.ts'
import { LIMITS } from '../limits.ts'
import type { metadataOf } from './metadata.ts'
import type { Settings } from '../options.ts'
import type { Writing } from './writing.ts'

/** @internal Selects the parts that metadata-only keeps. */
export interface Choosing {
  readonly metadata?: typeof metadataOf
}

/** @internal */
export type PayloadCapture = (payload: Payload | undefined, type?: string) => Captured

const EMPTY: Captured = { bytes: 2, write: () => ['{}'] }

/** @internal Captures at once, and masks later. */
export function createPayloadCapture(
  { capture, metadataKeys }: Pick<Settings, 'capture' | 'metadataKeys'>,
  writing: () => Writing & Choosing,
): PayloadCapture {
  return function capturePayload(payload, type) {
    // Untyped hosts may pass anything.
    if (payload === undefined || payload === null) return EMPTY
    const { error } = payload
    // A thrown value may be a Proxy, or have getters that throw.
    const isThrown = error !== undefined && readSafely(() => isError(error), true)
    const facts = isThrown
      ? joined(payload, { error: errorText(error), exception: payload['exception'] ?? exceptionOf(error) })
      : payload
    // Error messages quote their input; the error's class does not.
    const named = isThrown ? nameOf(error) : '[left out]'
    const choose = (whole: unknown) => writing().metadata?.(whole, metadataKeys, named, type)
    const chosen = capture === 'full' ? facts : choose(facts)
    const snapshot = snapshotOf(chosen ?? facts, LIMITS.payloadDepthLevels)
    const write = (maxBytes: number = LIMITS.payloadBytes) =>
      [writing().payload(chosen ? snapshot : chosenText(choose, snapshot), maxBytes)].flat()
    return { bytes: snapshot.bytes, write }
  }
}

/** In browsers, the code that selects metadata may be loaded after the call. */
function chosenText(choose: (whole: unknown) => unknown, { text }: JsonText): JsonText {
  return { text: JSON.stringify(choose(JSON.parse(text)) ?? {}), isCut: false }
}
