/**
 * In Node it is there from the first call on, because a process that ends writes too; elsewhere it is loaded beside the
 * host's code.
 */
import type { Diagnostics } from '../delivery/diagnostics.ts'
import type { JsonObject, JsonText } from './json.ts'
import { createMask, loadChecksum } from './mask.ts'
import type { Settings } from '../options.ts'
import { shorten } from './shorten.ts'
import { byteLength } from './text.ts'

/** Start of half a surrogate pair in the output of JSON.stringify. */
const HALF_PAIR = '\\ud'
/** An escape in JSON text; the second character may be a backslash itself. */
const ESCAPE = /\\(?:u.{4}|.)/g

/**
 * In JSON text, after a cut that was made before masking: longer than a private key, or any token that a header can hold. What
 * stands before the space may be masked.
 */
const REST = /[\x7f…]? \[cut: (\d{1,9}) characters\]((?:[^"\\]|\\[^]){0,16384})/g

export interface Writing {
  /** Resolves when numbers are checked too; before, everything like a number is masked. */
  readonly isChecked?: Promise<unknown> | undefined
  /** `maxBytes`: most 256 KiB. */
  payload(text: JsonText, maxBytes: number): string
  text(text: string): string
  /** JSON text of any length. @throws if masking fails. Absent where masking is. */
  masked?(json: string): string
}

/** Never throws. If masking fails, nothing is recorded of what was given. */
export function createWriting({ masking }: Pick<Settings, 'masking'>, diagnostics: Diagnostics): Writing {
  const mask = createMask(masking)
  const { cardNumber, iban } = masking

  function payload({ text: whole, isCut }: JsonText, maxBytes: number): string {
    let text: string
    try {
      text = mask.json(
        whole.includes(HALF_PAIR)
          ? whole.replace(ESCAPE, (escape) => (escape.startsWith(HALF_PAIR) ? '\ufffd' : escape))
          : whole,
      )
    } catch {
      diagnostics.report('error', 'masking_failed', 'Masking failed: the payload was dropped.')
      return '{"masked":"[masked:error]"}'
    }
    // Remove the rest of a cut text: it may be the rest of a credential, which masking does not recognize.
    if (isCut)
      text = text.replace(
        REST,
        (_, before, rest: string) => `… [cut: ${+before + rest.replace(ESCAPE, '.').length} characters]`,
      )
    const bytes = byteLength(text)
    if (!isCut && bytes <= maxBytes) return text
    diagnostics.count('shortened')
    diagnostics.report('warning', 'payload_shortened', `A payload of ${bytes} bytes was shortened to ${maxBytes}.`)
    return shorten(JSON.parse(text) as JsonObject, bytes, maxBytes)
  }

  function text(plainText: string): string {
    try {
      return mask.text(plainText)
    } catch {
      diagnostics.report('error', 'masking_failed', 'Masking failed: the payload was dropped.')
      return '[masked:error]'
    }
  }
  // If it cannot be loaded, everything like a number stays masked.
  const isChecked = cardNumber || iban ? loadChecksum().catch(() => undefined) : undefined
  return { isChecked, payload, text, masked: mask.json }
}
