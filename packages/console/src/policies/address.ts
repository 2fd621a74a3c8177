/** What the addresses of policies and prompts hold. */
import { textOf } from '../web/address.ts'

const PARTS = ['edit', 'versions', 'deployments'] as const
type Part = (typeof PARTS)[number]

/** What the address of a policy or a prompt holds. */
interface VersionedSearch {
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

/** What the address of a new policy holds: the step of a run that it is made from. */
interface NewPolicySearch {
  run?: string
  step?: string
}

export const readNewPolicySearch = (search: Record<string, unknown>): NewPolicySearch => textOf(search, ['run', 'step'])

/** What the address of a prompt holds. */
interface PromptSearch extends Omit<VersionedSearch, 'show'> {
  show?: Part | 'results'
}

export function readPromptSearch(search: Record<string, unknown>): PromptSearch {
  return { ...readVersionedSearch(search), ...(search['show'] === 'results' && { show: 'results' }) }
}
