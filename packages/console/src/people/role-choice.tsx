import type { Role } from '@tacho/contract/web/access.ts'
import { ROLES } from '@tacho/contract/engine/words.ts'
import { RadioCards } from '../web/ui/radio-cards.tsx'

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
