/** Recognised by their checksums, however they are grouped. Loaded if enabled. */

import { CARD_RUN, IBAN_RUN } from './number-runs.ts'

export interface NumberForm {
  /** Matches text that may contain a number of this form. */
  readonly run: RegExp
  /** How a number begins, at `lastIndex`. */
  readonly start: RegExp
  readonly minChars: number
  readonly maxChars: number
  /** Gets digits and letters as in base 36, without separators. */
  readonly isValid: (values: readonly number[]) => boolean
  readonly mark: string
}

export const CARD_NUMBER: NumberForm = {
  run: CARD_RUN,
  start: /\d/y,
  minChars: 13,
  maxChars: 19,
  isValid: isCardNumber,
  mark: '[masked:card]',
}

export const IBAN: NumberForm = {
  run: IBAN_RUN,
  start: /[A-Z]{2}\d{2}/iy,
  minChars: 15,
  maxChars: 34,
  isValid: isIban,
  mark: '[masked:iban]',
}

/** A number begins and ends with a group; the longest first, because other digits may stand beside it. */
export function maskNumbers(text: string, form: NumberForm): string {
  return text.replace(form.run, (run) => {
    let masked = ''
    let done = 0
    for (let at = 0; at < run.length; at++) {
      const isGroup = valueOf(run, at) !== undefined && valueOf(run, at - 1) === undefined
      form.start.lastIndex = at
      if (!isGroup || !form.start.test(run)) continue
      const end = endOfNumber(run, at, form)
      if (end === undefined) continue
      masked += run.slice(done, at) + form.mark
      done = end
      at = end - 1
    }
    return masked + run.slice(done)
  })
}

function endOfNumber(run: string, start: number, { minChars, maxChars, isValid }: NumberForm): number | undefined {
  const values: number[] = []
  let end: number | undefined
  for (let at = start; at < run.length && values.length < maxChars; at++) {
    const value = valueOf(run, at)
    if (value === undefined) continue
    values.push(value)
    const isGroupEnd = valueOf(run, at + 1) === undefined
    if (isGroupEnd && values.length >= minChars && isValid(values)) end = at + 1
  }
  return end
}

/** As in base 36; undefined for anything but a digit or a letter. */
function valueOf(text: string, at: number): number | undefined {
  const code = text.charCodeAt(at)
  if (code >= 48 && code <= 57) return code - 48
  const letter = code | 32
  return letter >= 97 && letter <= 122 ? letter - 87 : undefined
}

/** Luhn. */
function isCardNumber(digits: readonly number[]): boolean {
  let sum = 0
  let isSame = true
  for (let place = 0; place < digits.length; place++) {
    const digit = digits[digits.length - 1 - place] ?? 0
    const doubled = place % 2 === 1 ? digit * 2 : digit
    sum += doubled > 9 ? doubled - 9 : doubled
    isSame &&= digit === digits[0]
  }
  return sum % 10 === 0 && !isSame
}

/** ISO 13616: modulo 97 of the number without its first four characters, and these after it, is 1. */
function isIban(iban: readonly number[]): boolean {
  let lastByte = 0
  for (let place = 0; place < iban.length; place++) {
    const value = iban[(place + 4) % iban.length] ?? 0
    lastByte = (lastByte * (value > 9 ? 100 : 10) + value) % 97
  }
  return lastByte === 1
}
