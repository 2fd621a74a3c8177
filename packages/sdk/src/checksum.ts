/** Recognised by their checksums, however they are grouped. Loaded if enabled. */

import { CARD_RUN, IBAN_RUN } from './number-runs.ts'

export interface NumberForm {
  /** Matches text that may contain a number of this form. */
  readonly run: RegExp
  /** How the first group of a number begins. */
  readonly start: RegExp
  readonly minChars: number
  readonly maxChars: number
  /** Gets a number without separators. */
  readonly isValid: (number: string) => boolean
  readonly mark: string
}

export const CARD_NUMBER: NumberForm = {
  run: CARD_RUN,
  start: /^\d/,
  minChars: 13,
  maxChars: 19,
  isValid: isCardNumber,
  mark: '[masked:card]',
}

export const IBAN: NumberForm = {
  run: IBAN_RUN,
  start: /^[A-Z]{2}\d{2}/i,
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
    for (const { 0: group, index } of run.matchAll(/[A-Z\d]+/gi)) {
      if (index < done || !form.start.test(group)) continue
      const end = endOfNumber(run, index, form)
      if (end === undefined) continue
      masked += run.slice(done, index) + form.mark
      done = end
    }
    return masked + run.slice(done)
  })
}

function endOfNumber(run: string, start: number, { minChars, maxChars, isValid }: NumberForm): number | undefined {
  let number = ''
  let end: number | undefined
  for (let at = start; at < run.length && number.length < maxChars; at++) {
    if (valueOf(run, at) === undefined) continue
    number += run.charAt(at)
    const isGroupEnd = valueOf(run, at + 1) === undefined
    if (isGroupEnd && number.length >= minChars && isValid(number)) end = at + 1
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
function isCardNumber(digits: string): boolean {
  if (/^(.)\1+$/.test(digits)) return false
  let sum = 0
  for (let place = 0; place < digits.length; place++) {
    const digit = valueOf(digits, digits.length - 1 - place) ?? 0
    const doubled = place % 2 === 1 ? digit * 2 : digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

/** ISO 13616: modulo 97 of the number without its first four characters, and these after it, is 1. */
function isIban(iban: string): boolean {
  let rest = 0
  for (let place = 0; place < iban.length; place++) {
    const value = valueOf(iban, (place + 4) % iban.length) ?? 0
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97
  }
  return rest === 1
}
