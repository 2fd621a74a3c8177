import { useQuery } from '@tanstack/react-query'
import type { Role } from '@tacho/contract/web/route.ts'
import { ROLES } from '@tacho/contract/engine/words.ts'
import { RadioCards } from '../web/ui/field.tsx'
import { meQuery } from '../web/queries.ts'
import { Tabs } from '../web/ui/tabs.tsx'
import type { Scope } from './address.ts'

const NOTES: Record<Role, string> = {
  viewer: 'Reads everything.',
  approver: 'Also decides approvals and triages issues.',
  admin: 'Also changes environments, keys, prompts, policies, deployments and webhooks.',
  owner: 'Also manages people and operator tokens.',
}

export const roleWord = (role: Role): string => role.slice(0, 1).toUpperCase() + role.slice(1)

export function RoleChoice({ value, onChange }: { value: Role; onChange: (role: Role) => void }) {
  return (
    <RadioCards
      legend="Role"
      value={value}
      options={ROLES.map((role) => ({ value: role, name: roleWord(role), note: NOTES[role] }))}
      onChange={onChange}
    />
  )
}

/** People, tokens and the audit log belong to one workspace, or to the whole installation. */

interface Props {
  workspace: string
  scope: Scope
  onChange: (scope: Scope) => void
}

/** Shown to owners of the installation. */
export function ScopeTabs({ workspace, scope, onChange }: Props) {
  const { data: me } = useQuery(meQuery)
  if (me?.installation !== true) return null
  return (
    <Tabs
      label="Belonging to"
      value={scope}
      options={[
        ['workspace', workspace],
        ['everywhere', 'Every workspace'],
      ]}
      onChange={onChange}
    />
  )
}
