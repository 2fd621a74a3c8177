/**
 * Masks, bounds and writes payloads. In Node, this is available from the first call, because a process also writes when it
 * ends. Elsewhere, it is loaded while the host's code runs.
 */
import type { Diagnostics } from '../delivery/diagnostics.ts'
import type { JsonObject, JsonText } from './json.ts'
import { createMask, loadChecksum } from './mask.ts'
import type { Settings } from '../options.ts'
import { shorten, withoutRests } from './shorten.ts'
import { byteLength } from './text.ts'

/** Half a surrogate pair in the output of JSON.stringify, or another escape, such as that of a backslash before `ud83d`. */
const HALF_PAIR = /\\(?:ud.{3}|.)/g

export interface Writing {
  /** Resolves when numbers are checked too; before, everything like a number is masked. */
  readonly isChecked?: Promise<unknown> | boolean | undefined
  /** `maxBytes`: at most 256 KiB. Returns pieces if they exist already, because joining would copy them. */
  payload(text: JsonText, maxBytes: number): string | readonly string[]
  text(text: string): string
  /** Masks JSON text of any length. @throws if masking fails. Absent if this part could not be loaded. */
  json?(json: string): string
  /** Whether masks may change the text. Absent if this part could not be loaded. */
  touches?(json: string): boolean
}

/** Never throws. If masking fails, nothing of the payload or text is recorded. */
export function createWriting({ masking }: Pick<Settings, 'masking'>, diagnostics: Diagnostics): Writing {
  const mask = createMask(masking)

  function maskedOr(failed: string, act: () => string): string {
    try {
      return act()
    } catch {
      diagnostics.report('error', 'masking_failed', 'Masking failed: the payload was dropped.')
      return failed
    }
  }

  function payload({ text: whole, isCut }: JsonText, maxBytes: number): string {
    let text = maskedOr('{"masked":"[masked:error]"}', () =>
      mask.json(whole.includes('\\ud') ? whole.replace(HALF_PAIR, (escape) => (escape[2] ? '\ufffd' : escape)) : whole),
    )
    // Remove the rest of a cut text: it may be the rest of a credential, which masking does not recognize.
    if (isCut) text = withoutRests(text)
    const bytes = byteLength(text)
    if (!isCut && bytes <= maxBytes) return text
    return shorten(JSON.parse(text) as JsonObject, bytes, maxBytes, diagnostics)
  }

  const text = (plainText: string): string => maskedOr('[masked:error]', () => mask.text(plainText))
  // If it cannot be loaded, everything like a number stays masked.
  const isChecked = (masking.cardNumber || masking.iban) && loadChecksum().catch(() => undefined)
  return { ...mask, isChecked, payload, text }
}
