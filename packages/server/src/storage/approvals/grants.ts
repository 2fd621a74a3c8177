import type { GrantScope } from '@tacho/contract/engine/words.ts'

/** A standing approval. Each use is an approval of its own, which names it. */
export interface GrantRow {
  id: string
  /** The approval with which it was given. */
  approvalId: string
  scope: GrantScope
  toolName: string
  /** The family of the API key that asked. */
  keyFamily: string
  runId: string | null
  agentId: string | null
  inputHash: string | null
  condition: string | null
  /** Versions in force, by the id of their policy: the grant ends when one changes. */
  policies: Readonly<Record<string, number>>
  reason: string | null
  mostUses: number
  uses: number
  lastUsedAt: number | null
  createdAt: number
  expiresAt: number
  granterKind: 'operator' | 'token'
  granterId: string
  granterName: string
  endedAt: number | null
  /** When its run ended; null: it goes on, or the grant is of no run. */
  runEndedAt: number | null
  /** Who revoked it; null: a policy changed. */
  endedBy: string | null
}

/** What a person allows beside this one call. */
export interface NewGrant {
  id: string
  scope: GrantScope
  condition: string | null
  mostUses: number
  expiresAt: number
}

/** Why nothing but the one call can be allowed. */
export const GRANT_FAULTS = {
  no_key: 'the request is from before API keys were recorded, or was imported',
  no_run: 'the request names no run',
  no_agent: 'the request names no agent',
  no_policy: 'the request names no policy that is in force, or another version of it',
  never: 'its policy does not allow it: by default, one of severity CRITICAL does not',
  two_people: 'its policy needs two people',
  too_many: 'too many are in use in the environment: revoke some',
} as const
export type GrantFault = keyof typeof GRANT_FAULTS

/** `uses`: of an approval by a grant. */
export interface GrantUse {
  grantId: string
  /** All policies that ask for this call, as far as it is known. */
  policyIds: readonly string[]
  /** What was compared with the condition. */
  inputEventId: string | null
  now: number
}

/** Of the whole installation. */
export interface InForce {
  stops: number
  grants: number
  /** Calls that these grants have approved. */
  grantUses: number
}
