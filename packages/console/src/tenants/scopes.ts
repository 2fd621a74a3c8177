import type { Scope } from '@tacho/contract/web/route.ts'

/** What each scope allows. */
export const SCOPE_NOTES: readonly (readonly [Scope, string])[] = [
  ['events:write', 'record events, report issues, ask for approval'],
  ['config:read', 'load prompts (with policies:read)'],
  ['policies:read', 'load policies, read approvals'],
  ['usage:read', 'list runs, read their events'],
]
