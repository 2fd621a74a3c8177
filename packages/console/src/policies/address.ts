/** Search parameters of the pages of policies and prompts. */
import { textOf } from '../web/address.ts'

const PARTS = ['edit', 'versions', 'deployments'] as const
type Part = (typeof PARTS)[number]

interface VersionedAddress {
  show?: Part
  /** The versions to compare. */
  from?: number
  to?: number
}

const VERSION = /^[1-9][0-9]{0,8}$/

function readVersionedAddress(search: Record<string, unknown>): VersionedAddress {
  const { show, from, to } = textOf(search, ['show', 'from', 'to'])
  const shownPart = PARTS.find((one) => one === show)
  return {
    ...(shownPart && shownPart !== 'edit' && { show: shownPart }),
    // Use numbers, because texts would have quotes in the address.
    ...(from !== undefined && VERSION.test(from) && { from: Number(from) }),
    ...(to !== undefined && VERSION.test(to) && { to: Number(to) }),
  }
}

/** Search parameters of a policy's page: versions and simulation. */
interface PolicyAddress extends VersionedAddress {
  simulation?: string
}

export const readPolicyAddress = (search: Record<string, unknown>): PolicyAddress => ({
  ...readVersionedAddress(search),
  ...textOf(search, ['simulation']),
})

/** Search parameters of the page for a new policy: the recorded step from which it is made. */
interface NewPolicyAddress {
  run?: string
  step?: string
}

export const readNewPolicySearch = (search: Record<string, unknown>): NewPolicyAddress =>
  textOf(search, ['run', 'step'])

interface PromptAddress extends Omit<VersionedAddress, 'show'> {
  show?: Part | 'results'
}

export function readPromptAddress(search: Record<string, unknown>): PromptAddress {
  return { ...readVersionedAddress(search), ...(search['show'] === 'results' && { show: 'results' }) }
}
