/**
 * Splits a shell command into simple commands without running it. Handles quotes, redirections, here-documents,
 * substitutions and variables that the command itself sets. Parts that only a shell can expand stay unknown.
 */

/** Stands for a part of a word that only the shell can expand, such as `$HOME`. */
export const UNKNOWN = '\0'

export type ShellPart =
  | { readonly is: 'command'; readonly words: readonly string[]; readonly written: readonly string[] }
  /** A parenthesis. Changes inside it, for example of the folder, end with it. */
  | { readonly is: 'open' }
  | { readonly is: 'close' }
  /** A command inside a word: `$(…)` or `` `…` ``. */
  | { readonly is: 'inner'; readonly text: string }

const CHARS_MAX = 200_000
const VARIABLES_MAX = 1_000
const ASSIGNING = new Set(['export', 'declare', 'local', 'readonly', 'typeset'])

/** The simple commands of a text, with the files of their redirections. Longer texts are cut. */
export function partsOf(text: string, variables: Map<string, string>): ShellPart[] {
  const source = text.slice(0, CHARS_MAX)
  const parts: ShellPart[] = []
  let words: string[] = []
  let written: string[] = []
  let word: string | null = null
  /** Kind of the next word. */
  let next: 'word' | 'written' | 'read' | 'end of document' = 'word'
  /** End markers of the here-documents that begin after this line. */
  let documents: string[] = []
  let at = 0

  const endWord = (): void => {
    if (word === null) return
    if (next === 'written') written.push(word)
    else if (next === 'end of document') documents.push(word)
    else if (next === 'word') {
      const isFirst = words.length === 0
      const [, name, value = ''] =
        isFirst || ASSIGNING.has(words[0] as string) ? (/^(\w+)=(.*)$/s.exec(word) ?? []) : []
      if (name !== undefined && variables.size < VARIABLES_MAX) variables.set(name, value)
      if (name === undefined || !isFirst) words.push(word)
    }
    next = 'word'
    word = null
  }
  const endCommand = (): void => {
    endWord()
    if (words.length + written.length > 0) parts.push({ is: 'command', words, written })
    words = []
    written = []
  }
  /** Reads the `$…` or backtick expansion at this place. Returns its value. */
  const expansion = (): string => {
    const sourceStart = source.slice(at, at + 200)
    const inner = source[at] === '`' ? closing('`') : sourceStart.startsWith('$(') ? closing(')') : null
    if (inner !== null) {
      parts.push({ is: 'inner', text: source.slice(at + (source[at] === '`' ? 1 : 2), inner) })
      at = inner
      return UNKNOWN
    }
    const [whole = '', plain, braced] = /^\$(?:(\w+)|\{(\w+)\})/.exec(sourceStart) ?? []
    at += Math.max(0, whole.length - 1)
    const known = variables.get(plain ?? braced ?? '')
    if (known === undefined && whole === '') return source[at] === '$' && /^\$[\s"']/.test(sourceStart) ? '$' : UNKNOWN
    return known ?? UNKNOWN
  }
  const closing = (end: ')' | '`'): number => {
    let depth = 0
    for (let to = at + 1; to < source.length; to++) {
      if (source[to] === '\\') to++
      else if (end === ')' && source[to] === '(') depth++
      else if (source[to] === end && (end === '`' || --depth === 0)) return to
    }
    return source.length
  }
  const skipDocuments = (): void => {
    for (const end of documents) {
      while (at < source.length) {
        const stop = source.indexOf('\n', at + 1)
        const line = source.slice(at + 1, stop === -1 ? source.length : stop)
        at = stop === -1 ? source.length : stop
        if (line.trim() === end) break
      }
    }
    documents = []
  }

  for (; at < source.length; at++) {
    const char = source[at] as string
    if (char === '\\') {
      at++
      if (source[at] !== '\n') word = (word ?? '') + (source[at] ?? '')
    } else if (char === "'") {
      const end = source.indexOf("'", at + 1)
      word = (word ?? '') + source.slice(at + 1, end === -1 ? source.length : end)
      at = end === -1 ? source.length : end
    } else if (char === '"') {
      word ??= ''
      for (at++; at < source.length && source[at] !== '"'; at++) {
        if (source[at] === '\\' && /["\\$`\n]/.test(source[at + 1] ?? '')) word += source[++at]
        else word += source[at] === '$' || source[at] === '`' ? expansion() : source[at]
      }
    } else if (char === '$' && source[at + 1] === "'") {
      continue
    } else if (char === '$' || char === '`') {
      word = (word ?? '') + expansion()
    } else if (char === '#' && word === null) {
      const end = source.indexOf('\n', at)
      at = (end === -1 ? source.length : end) - 1
    } else if (char === '>' || char === '<') {
      // A number before a redirection is a file descriptor.
      if (word !== null && /^\d+$/.test(word)) word = null
      endWord()
      const [operator = char] = /^(<<<|<<-?|<>|<&|<\(|<|>>|>&|>\||>\(|>)/.exec(source.slice(at, at + 3)) ?? []
      if (operator.endsWith('(')) {
        parts.push({ is: 'inner', text: source.slice(at + 2, closing(')')) })
        at = closing(')')
        word = UNKNOWN
        continue
      }
      at += operator.length - 1
      next =
        operator.startsWith('<<') && operator !== '<<<'
          ? 'end of document'
          : operator[0] === '>' || operator === '<>'
            ? 'written'
            : 'read'
    } else if (char === '\n') {
      endCommand()
      skipDocuments()
    } else if (char === '(' || char === ')') {
      endCommand()
      parts.push(char === '(' ? { is: 'open' } : { is: 'close' })
    } else if (/[;&|]/.test(char)) {
      // `&>` redirects; the next turn reads `>`.
      if (char === '&' && source[at + 1] === '>') endWord()
      else endCommand()
    } else if (/\s/.test(char)) endWord()
    else if (char === '~' && word === null && /^~(\/|\s|$)/.test(source.slice(at, at + 2)))
      word = variables.get('HOME') ?? UNKNOWN
    else word = (word ?? '') + char
  }
  endCommand()
  return parts
}
