const LAST = 0x10ffff
const BEFORE_SURROGATES = 0xd7ff
const AFTER_SURROGATES = 0xe000

/** Half-open, in code point order, as ids in every store. `below` null: no text follows. The prefix is well-formed. */
export function prefixRange(prefix: string): { from: string; below: string | null } {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0)
  while (points.at(-1) === LAST) points.pop()
  const last = points.pop()
  if (last === undefined) return { from: prefix, below: null }
  const next = last === BEFORE_SURROGATES ? AFTER_SURROGATES : last + 1
  return { from: prefix, below: String.fromCodePoint(...points, next) }
}
