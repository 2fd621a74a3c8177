/**
 * Any code point, as the unit of a random string. fast-check's unit `binary` is the same, but first makes a map of a million
 * characters, which takes a second of processor time in each process.
 */
import fc from 'fast-check'

const [SURROGATES_FROM, SURROGATES_END, LAST] = [0xd8_00, 0xe0_00, 0x10_ff_ff]
const SURROGATES = SURROGATES_END - SURROGATES_FROM

export const anyCharacter: fc.Arbitrary<string> = fc
  .nat({ max: LAST - SURROGATES })
  .map((n) => String.fromCodePoint(n < SURROGATES_FROM ? n : n + SURROGATES), numberOf)

/** @throws Error for any other value, as fast-check requires. */
function numberOf(value: unknown): number {
  const point = typeof value === 'string' ? value.codePointAt(0) : undefined
  if (point === undefined || value !== String.fromCodePoint(point)) throw new Error('Not one character')
  if (point < SURROGATES_FROM) return point
  if (point < SURROGATES_END) throw new Error('Half a character')
  return point - SURROGATES
}
