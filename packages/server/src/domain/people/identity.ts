import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { GrantedRole } from '../../storage/people/operators.ts'

const LOCAL_PART = /^[^\s@<>",;:\\()[\]\p{Cc}]{1,64}$/u
const DOMAIN_LABEL = /^[\p{L}\p{N}]([\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?$/u
const MAX_CHARS = 254

export function isEmail(text: string): boolean {
  const at = text.lastIndexOf('@')
  if (at < 1 || text.length > MAX_CHARS || !text.isWellFormed()) return false
  return (
    LOCAL_PART.test(text.slice(0, at)) &&
    domainOf(text)
      .split('.')
      .every((label) => DOMAIN_LABEL.test(label))
  )
}

/** Never turns a non-ASCII letter into an ASCII one: `\u212aate@`, with the Kelvin sign, must not become kate@. */
export function lowerCase(text: string): string {
  return text.replace(/[^\p{Ll}]/gu, (letter) => {
    const lower = letter.toLowerCase()
    return letter > '\u007f' && /[a-z]/.test(lower) ? letter : lower
  })
}

export function domainOf(email: string): string {
  return email.slice(email.lastIndexOf('@') + 1)
}

export type { GrantedRole }
export type GroupRoles = ReadonlyMap<string, readonly GrantedRole[]>

/**
 * The groups in a claim of an id token. A provider may send a single group as a text. Null: too many, or another shape,
 * which gives no role.
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
