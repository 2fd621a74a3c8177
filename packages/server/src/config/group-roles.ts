import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { ROLES } from '@tacho/contract/engine/words.ts'
import { isStorableText } from '../domain/web/text.ts'
import type { GrantedRole, GroupRoles } from '../domain/people/groups.ts'
import type { Setting } from './setting.ts'

const EVERYWHERE = '*'

/** `{ "group": { "workspace": "role", "*": "role" } }` */
export function groupRoles(help: string): Setting<GroupRoles | null> {
  const mustBe = `a JSON object of at most ${LIMITS.mappedGroups} groups, such as {"acme-admins":{"acme":"admin"},"all-staff":{"*":"viewer"}}; roles are ${ROLES.join(', ')}`
  return {
    placeholder: 'json',
    help,
    byDefault: null,
    fromFile: true,
    parse(given) {
      const value = readGroupRoles(given)
      return value === null ? { mustBe } : { value }
    },
  }
}

function readGroupRoles(given: string): GroupRoles | null {
  const groups = membersOf(parsed(given))
  if (groups === null || groups.length === 0 || groups.length > LIMITS.mappedGroups) return null
  const read = new Map<string, GrantedRole[]>()
  for (const [group, members] of groups) {
    const roles = membersOf(members)?.map(([workspace, role]) => ({
      workspace: workspace === EVERYWHERE ? null : workspace,
      role: ROLES.find((known) => known === role),
    }))
    if (roles === undefined || roles.length === 0) return null
    if (roles.some(({ workspace, role }) => role === undefined || !isName(workspace ?? EVERYWHERE))) return null
    read.set(group, roles as GrantedRole[])
  }
  return read
}

const isName = (text: string): boolean =>
  isStorableText(text) && text !== '' && Array.from(text).length <= LIMITS.nameChars

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function membersOf(value: unknown): [string, unknown][] | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : null
}
