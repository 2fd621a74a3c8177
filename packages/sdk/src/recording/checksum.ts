/** Recognises card and account numbers by their checksums, however they are grouped. Loaded if enabled. */

import { CARD_RUN, IBAN_RUN } from './number-runs.ts'

export interface NumberForm {
  /** Matches text that may contain a number of this form. */
  readonly run: RegExp
  /** How a number begins, at `lastIndex`. Absent: with any digit. */
  readonly start?: RegExp
  readonly minChars: number
  readonly maxChars: number
  /** Takes the characters of a run as base 36 values without separators. The result checks whether a part of them is a number. */
  readonly checking: (values: Uint8Array) => (from: number, to: number) => boolean
  readonly mark: string
}

export const CARD_NUMBER: NumberForm = {
  run: CARD_RUN,
  minChars: 13,
  maxChars: 19,
  checking: cardNumbers,
  mark: '[masked:card]',
}

export const IBAN: NumberForm = {
  run: IBAN_RUN,
  start: /[A-Z]{2}\d{2}/iy,
  minChars: 15,
  maxChars: 34,
  checking: ibans,
  mark: '[masked:iban]',
}

/** Masks numbers that begin and end with a group. Tries the longest first, because other digits may be next to it. */
export function maskNumbers(text: string, form: NumberForm): string {
  return text.replace(form.run, (run) => {
    const { start, minChars, maxChars, mark } = form
    const values = new Uint8Array(run.length)
    /** Place of each value in the text. */
    const places = new Uint32Array(run.length)
    let count = 0
    for (let at = 0; at < run.length; at++) {
      const value = valueOf(run.charCodeAt(at))
      if (value === undefined) continue
      places[count] = at
      values[count++] = value
    }
    const placeOf = (index: number): number => places[index] ?? 0
    const isGroupEnd = (end: number): boolean => end === count || placeOf(end) > placeOf(end - 1) + 1
    const isNumber = form.checking(values.subarray(0, count))
    let masked = ''
    let done = 0
    for (let from = 0; from + minChars <= count; from++) {
      if (from > 0 && !isGroupEnd(from)) continue
      if (start) {
        start.lastIndex = placeOf(from)
        if (!start.test(run)) continue
      }
      let to = Math.min(from + maxChars, count)
      while (to >= from + minChars && !(isGroupEnd(to) && isNumber(from, to))) to--
      if (to < from + minChars) continue
      masked += run.slice(done, placeOf(from)) + mark
      done = placeOf(to - 1) + 1
      from = to - 1
    }
    return masked + run.slice(done)
  })
}

/** Base 36 value of a character; undefined for anything but a digit or a letter. */
function valueOf(code: number): number | undefined {
  if (code >= 48 && code <= 57) return code - 48
  const letter = code | 32
  return letter >= 97 && letter <= 122 ? letter - 87 : undefined
}

/** Luhn by prefix sums over the run of digits: one with the digits at even places doubled, one with those at odd places. */
function cardNumbers(digits: Uint8Array): (from: number, to: number) => boolean {
  const sums = [new Uint32Array(digits.length + 1), new Uint32Array(digits.length + 1)] as const
  /** For each end, where the equal digits before it begin. */
  const equalFrom = new Uint32Array(digits.length + 1)
  for (let place = 0; place < digits.length; place++) {
    const digit = digits[place] ?? 0
    const doubled = digit > 4 ? digit * 2 - 9 : digit * 2
    sums[0][place + 1] = (sums[0][place] ?? 0) + (place % 2 === 0 ? doubled : digit)
    sums[1][place + 1] = (sums[1][place] ?? 0) + (place % 2 === 0 ? digit : doubled)
    equalFrom[place + 1] = place > 0 && digits[place - 1] === digit ? (equalFrom[place] ?? 0) : place
  }
  return (from, to) => {
    const sum = to % 2 === 0 ? sums[0] : sums[1]
    return ((sum[to] ?? 0) - (sum[from] ?? 0)) % 10 === 0 && (equalFrom[to] ?? 0) > from
  }
}

/** ISO 13616: with its first four characters moved to the end, the number modulo 97 is 1. */
function ibans(iban: Uint8Array): (from: number, to: number) => boolean {
  return (from, to) => {
    let remainder = 0
    for (let at = from + 4; at < to + 4; at++) {
      const value = iban[at < to ? at : at - to + from] ?? 0
      remainder = (remainder * (value > 9 ? 100 : 10) + value) % 97
    }
    return remainder === 1
  }
}
