import { textOf } from '../web/search.ts'

export const PARTS = ['edit', 'versions', 'deployments'] as const
export type Part = (typeof PARTS)[number]

/** What the address of a policy or a prompt holds. */
export interface VersionedSearch {
  show?: Part
  /** Versions that are compared. */
  from?: number
  to?: number
}

const VERSION = /^[1-9][0-9]{0,8}$/

export function readVersionedSearch(search: Record<string, unknown>): VersionedSearch {
  const { show, from, to } = textOf(search, ['show', 'from', 'to'])
  const part = PARTS.find((one) => one === show)
  return {
    ...(part && part !== 'edit' && { show: part }),
    // As numbers, which the address shows without quotes.
    ...(from !== undefined && VERSION.test(from) && { from: Number(from) }),
    ...(to !== undefined && VERSION.test(to) && { to: Number(to) }),
  }
}
