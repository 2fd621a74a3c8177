/** Which value of an input an earlier result has too: the input probably depends on it. Pure. */

const TOKEN = /"(?<text>(?:[^"\\]|\\.)*)"(?<key>\s*:)?|(?<number>-?\d[\d.eE+-]*)/gsu
/** Shorter ones are in results by chance. */
const CHARS = 4
const VALUES = 200

/** The longest text or number of the input that the result has as a whole value or word. Both are JSON; either may be cut off. */
export function sharedValue(input: string, result: string): string | null {
  const values = new Set<string>()
  for (const { groups: { text, key, number } = {} } of input.matchAll(TOKEN)) {
    const value = text ?? number
    if (value !== undefined && key === undefined && value.length >= CHARS) values.add(value)
    if (values.size === VALUES) break
  }
  const longest = [...values].sort((one, other) => other.length - one.length)
  return longest.find((value) => hasWhole(result, value)) ?? null
}

const PART_OF_WORD = /[\p{L}\p{N}_]/u

function hasWhole(text: string, value: string): boolean {
  for (let at = text.indexOf(value); at !== -1; at = text.indexOf(value, at + value.length)) {
    const around = [text.charAt(at - 1), text.charAt(at + value.length)]
    if (!around.some((character) => PART_OF_WORD.test(character))) return true
  }
  return false
}
