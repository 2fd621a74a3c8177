/**
 * The query language of the search:
 *
 *   query: item item ...        every item must match
 *   item:  [-] [field:] value   a minus excludes
 *   value: "text" | text        words that stand side by side
 */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { SEARCH_FIELDS, type SearchField } from '@tacho/contract/runs/search-filters.ts'
import { wordsOf, type SearchClause } from '../../storage/runs/search.ts'

export type ParsedQuery = { ok: true; clauses: SearchClause[] } | { ok: false; position: number; message: string }

/** White space, or one item: minus, field, quoted or plain text, and the closing quote. */
const ITEM = /\s+|(-?)(?:([A-Za-z]+):(?!\/\/))?(?:"([^"]*)("?)|([^\s"]*))/y

/** `position` counts code points from 1. */
export function parseSearchQuery(text: string): ParsedQuery {
  const clauses: SearchClause[] = []
  const fault = (at: number, message: string): ParsedQuery => {
    return { ok: false, position: Array.from(text.slice(0, at)).length + 1, message }
  }
  let words = 0
  for (let at = 0; at < text.length; at = ITEM.lastIndex) {
    ITEM.lastIndex = at
    const [item = '', minus, name, quoted, quote, plain] = ITEM.exec(text) ?? []
    if (item.trim() === '') continue
    const field = name === undefined ? null : SEARCH_FIELDS.find((known) => known === name.toLowerCase())
    if (field === undefined) {
      return fault(at, `has the unknown field ${name}. Fields are ${SEARCH_FIELDS.join(', ')}; quote other text`)
    }
    if (quoted !== undefined && quote === '') return fault(at + item.indexOf('"'), 'has a quote that is not closed')
    const clause = { field, words: wordsOf(quoted ?? plain ?? '').map(({ word }) => word), isExcluded: minus === '-' }
    if (clause.words.length === 0) return fault(at, `needs a letter or digit ${after(field, clause.isExcluded)}`)
    words += clause.words.length
    if (words > LIMITS.searchQueryWords) return fault(at, `has more than ${LIMITS.searchQueryWords} words`)
    clauses.push(clause)
  }
  if (clauses.every(({ isExcluded }) => isExcluded)) return fault(0, 'needs a word or field that is not excluded')
  return { ok: true, clauses }
}

function after(field: SearchField | null, isExcluded: boolean): string {
  if (field !== null) return `after ${field}:`
  return isExcluded ? 'after the minus' : 'here'
}
