/** JSON inside other text: objects, lists, and texts that encode one of them. */

const BEGIN = /[[{](?=\s{0,99}(?:\\{0,15}"|[[{]))|"(?=\s{0,99}\\{0,15}["[{])/g
const ENCODED = /"(?:[^"\\]|\\[^])*"/y
/** Maximum reads of each character, on average. Otherwise, unclosed brackets would be read again and again. */
const READS = 8

/**
 * Replaces the outermost pieces of JSON.
 * @param replace returns undefined for what is not JSON; then the search continues inside it.
 */
export function replaceJson(text: string, replace: (json: string) => string | undefined): string {
  const begin = new RegExp(BEGIN)
  let room = READS * text.length
  let replaced = ''
  let done = 0
  for (let beginMatch = begin.exec(text); beginMatch && room > 0; beginMatch = begin.exec(text)) {
    const start = beginMatch.index
    const end = text[start] === '"' ? endOfEncoded(text, start) : endOfNested(text, start)
    room -= (end || text.length) - start
    const piece = end > 0 ? replace(text.slice(start, end)) : undefined
    if (piece === undefined) continue
    replaced += text.slice(done, start) + piece
    done = begin.lastIndex = end
  }
  return replaced + text.slice(done)
}

function endOfEncoded(text: string, start: number): number {
  ENCODED.lastIndex = start
  return ENCODED.test(text) ? ENCODED.lastIndex : 0
}

/** The place after the closing bracket; 0: none. All quotes of the nested JSON have as many backslashes as the first. */
function endOfNested(text: string, start: number): number {
  const first = text.indexOf('"', start)
  const slashes = slashesBefore(text, first)
  let depth = 0
  let isText = false
  for (let at = start; at < text.length; at++) {
    const char = text[at]
    if (char === '"') {
      const count = slashesBefore(text, at)
      if (slashes === 0 ? count % 2 === 0 || !isText : count === slashes) isText = !isText
    } else if (isText) continue
    else if (char === '{' || char === '[') depth++
    else if ((char === '}' || char === ']') && --depth === 0) return at + 1
  }
  return 0
}

function slashesBefore(text: string, at: number): number {
  let count = 0
  while (count < 99 && text[at - 1 - count] === '\\') count++
  return count
}

const LITERAL = /"(?:[^"\\]|\\[^])*"/g

/** Changes only the texts that differ between the two values. A value of another shape is written anew. */
export function rewritten(source: string, before: string, after: string): string {
  if (before === after) return source
  const [written, old, changed] = [source, before, after].map((text) => text.match(LITERAL) ?? [])
  const isSame = written?.length === old?.length && old?.length === changed?.length
  const shape = (text: string) => text.replace(LITERAL, '""')
  if (!isSame || shape(before) !== shape(after)) return after
  let index = -1
  return source.replace(LITERAL, (text) => (old?.[++index] === changed?.[index] ? text : (changed?.[index] ?? text)))
}
