/** Text of clients, safe for a terminal. Pure. */

/**
 * Escapes text of clients for a terminal: control characters could move the cursor or clear the screen, and direction
 * marks could reverse text.
 */
export function printable(text: string): string {
  return text.toWellFormed().replace(UNSAFE, escaped)
}

const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** The same for JSON text, whose line breaks and tabs are white space. It stays the same JSON. */
export function printableJson(json: string): string {
  return json.replace(UNSAFE, (character) => (/[\n\r\t]/.test(character) ? character : escaped(character)))
}

function escaped(character: string): string {
  const short: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }
  return short[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
