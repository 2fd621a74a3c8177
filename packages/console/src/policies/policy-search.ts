import { textOf } from '../web/search.ts'

/** What the address of a new policy holds: the step of a run that it is made from. */
export interface NewPolicySearch {
  run?: string
  step?: string
}

export const readNewPolicySearch = (search: Record<string, unknown>): NewPolicySearch => textOf(search, ['run', 'step'])
