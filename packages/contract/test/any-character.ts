/**
 * Any code point, as the unit of a random string. The one of fast-check (`binary`) is the same, but makes a map of a million
 * characters first: a second of processor time for each process.
 */
import fc from 'fast-check'

const [SURROGATES_FROM, SURROGATES_END, LAST] = [0xd8_00, 0xe0_00, 0x10_ff_ff]
const SURROGATES = SURROGATES_END - SURROGATES_FROM

export const anyCharacter: fc.Arbitrary<string> = fc
  .nat({ max: LAST - SURROGATES })
  .map((n) => String.fromCodePoint(n < SURROGATES_FROM ? n : n + SURROGATES), numberOf)

/** @throws Error for anything else, as fast-check wants it. */
function numberOf(value: unknown): number {
  const point = typeof value === 'string' ? value.codePointAt(0) : undefined
  if (point === undefined || value !== String.fromCodePoint(point)) throw new Error('Not one character')
  if (point < SURROGATES_FROM) return point
  if (point < SURROGATES_END) throw new Error('Half a character')
  return point - SURROGATES
}
