import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { GrantedRole } from '../../storage/people/operators.ts'

export type { GrantedRole }
export type GroupRoles = ReadonlyMap<string, readonly GrantedRole[]>

/**
 * The groups in a claim of an id token. A provider with one group may send its name alone. Null: too many, or another
 * shape, which gives no role.
 */
export function groupsIn(claim: unknown): string[] | null {
  const names = typeof claim === 'string' ? [claim] : (claim ?? [])
  if (!Array.isArray(names) || names.length > LIMITS.groupsOfPerson) return null
  return names.every((name) => typeof name === 'string') ? names : null
}

/** The roles that a person's groups give. */
export function rolesOfGroups(groups: readonly string[], roles: GroupRoles | null): GrantedRole[] {
  return [...new Set(groups)].flatMap((group) => roles?.get(group) ?? [])
}
