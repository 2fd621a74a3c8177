import { useMatches } from '@tanstack/react-router'
import { useState } from 'react'
import { readRange, type Range } from '../address.ts'

/**
 * The pages of the palette and the keys `g …`, in order. `hasRange`: its address holds a range of time, which goes along from
 * page to page.
 */
export const PAGES = [
  { name: 'Overview', to: '/w/$workspace/$environment', key: 'o', hasRange: true },
  { name: 'Runs', to: '/w/$workspace/$environment/runs', key: 'r', hasRange: true },
  { name: 'Agents', to: '/w/$workspace/$environment/agents', key: 'n', hasRange: true },
  { name: 'Sessions', to: '/w/$workspace/$environment/sessions', key: 'e', hasRange: true },
  { name: 'Search', to: '/w/$workspace/$environment/search', key: 'f', hasRange: true },
  { name: 'Judge', to: '/w/$workspace/$environment/judge', key: 'j', hasRange: true },
  { name: 'Approvals', to: '/w/$workspace/$environment/approvals', key: 'a', hasRange: false },
  { name: 'Issues', to: '/w/$workspace/$environment/issues', key: 'i', hasRange: true },
  { name: 'Policies', to: '/w/$workspace/$environment/policies', key: 'p', hasRange: false },
  { name: 'Prompts', to: '/w/$workspace/$environment/prompts', key: 'm', hasRange: false },
  { name: 'Rollout', to: '/w/$workspace/$environment/rollout', key: 'l', hasRange: false },
  { name: 'Usage', to: '/w/$workspace/$environment/usage', key: 'u', hasRange: true },
  { name: 'Settings', to: '/w/$workspace/$environment/settings', key: ',', hasRange: false },
  { name: 'Get started', to: '/w/$workspace/$environment/get-started', key: 's', hasRange: false },
] as const

/** Needed once, or a tab of another page. */
const NOT_IN_HEADER: readonly string[] = ['Sessions', 'Search', 'Judge', 'Get started']
export const HEADER_PAGES = PAGES.filter(({ name }) => !NOT_IN_HEADER.includes(name))

const RANGED: ReadonlySet<string> = new Set([
  ...PAGES.filter(({ hasRange }) => hasRange).map(({ to }) => to),
  '/w/$workspace/$environment/agents/$agent',
])

/** Whether the page with this route reads a range from its address. */
const hasRange = (fullPath: string): boolean => RANGED.has(fullPath.replace(/\/$/, ''))

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
