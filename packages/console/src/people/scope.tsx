/** People, tokens and the audit log belong to one workspace, or to the whole installation. */
import { useQuery } from '@tanstack/react-query'
import { meQuery } from '../web/queries.ts'
import { Tabs } from '../web/ui/tabs.tsx'
import type { Scope } from './address.ts'

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
