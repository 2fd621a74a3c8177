import { useMatches } from '@tanstack/react-router'
import { useState } from 'react'
import { readRange, type Range } from '../range.ts'
import { hasRange } from './pages.ts'

/** The range that goes along: that of the page on screen, or of the last page that has one, such as Runs before a run. */
export function useCarriedRange(): Range {
  const text = useMatches({
    select(matches) {
      const page = matches.at(-1)
      return page && hasRange(page.fullPath) ? JSON.stringify(readRange(page.search)) : null
    },
  })
  const [kept, setKept] = useState('{}')
  if (text !== null && text !== kept) setKept(text)
  return JSON.parse(text ?? kept) as Range
}

/** The address of a page, with the range if the page has one. */
export function withRange<To extends string>({ to, hasRange }: { to: To; hasRange: boolean }, range: Range) {
  return { to, search: hasRange ? range : {} }
}
