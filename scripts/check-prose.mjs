// Finds sentences in the documents that open with "What", "Who", "Where", "For" or "Of" and are not questions: their
// subject comes too late.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const OPENERS = /^(What|Who|Whoever|Where|Of|For(?! example\b))\s/
/** The start of a paragraph, even without an empty line before it. */
const BLOCK = /^(\s*([-*]|\d+\.)\s|\||#|>|$)/

const files = execFileSync('git', ['ls-files', '*.md'], { encoding: 'utf8' }).trim().split('\n')
const found = files.flatMap((file) => faultsOf(readFileSync(file, 'utf8')).map((fault) => `${file}:${fault}`))
for (const line of found) console.error(line)
process.exitCode = found.length > 0 ? 1 : 0

function faultsOf(text) {
  return paragraphsOf(text).flatMap(({ line, words }) =>
    sentencesOf(words)
      .filter((sentence) => OPENERS.test(sentence) && !/[?:]$/.test(sentence))
      .map((sentence) => `${line}: opens with "${sentence.slice(0, 400)}": say the subject first`),
  )
}

/** The prose of a text, without code and headings. Cells of tables are included if they are sentences. */
function paragraphsOf(text) {
  const paragraphs = []
  let isCode = false
  let current = null
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*```/.test(line)) isCode = !isCode
    if (isCode || /^\s*```|^#|^\s*$/.test(line)) current = null
    else if (line.startsWith('|')) {
      const sentences = line.split(/(?<!\\)\|/).filter((cell) => /[.?]\s*$/.test(cell))
      for (const cell of sentences) paragraphs.push({ line: index + 1, words: cell.trim() })
      current = null
    } else if (current === null || BLOCK.test(line)) {
      current = { line: index + 1, words: line.replace(/^\s*([-*]|\d+\.|>)\s+/, '').trim() }
      paragraphs.push(current)
    } else current.words += ` ${line.trim()}`
  }
  return paragraphs
}

function sentencesOf(words) {
  const plain = words.replace(/`[^`]*`/g, 'code').replace(/\*\*/g, '')
  return plain.split(/(?<=[.!?:])\s+(?=[A-Z])/)
}
