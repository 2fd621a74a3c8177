/**
 * Counted before parsing: millions of empty lists fit in a body and take a hundred times its size. A name that occurs once
 * takes ten times as long as a value, so names count too, unless the body is a list of things with the same names.
 */

const QUOTE_BYTE = 0x22
const BACKSLASH_BYTE = 0x5c
const COMMA = 0x2c
const COLON = 0x3a

export function hasMoreValues(bytes: Uint8Array, most: number, { names = true } = {}): boolean {
  if (bytes.length <= most) return false
  let values = 1
  let isText = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (isText) {
      if (byte === BACKSLASH_BYTE) at++
      else if (byte === QUOTE_BYTE) isText = false
    } else if (byte === QUOTE_BYTE) isText = true
    // `[` and `{` differ in one bit.
    else if (byte === COMMA || (names && byte === COLON) || ((byte ?? 0) | 0x20) === 0x7b) {
      values++
      if (values > most) return true
    }
  }
  return false
}
