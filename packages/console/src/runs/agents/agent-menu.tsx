import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../../web/api.ts'
import { EraseDialog } from '../../data/erase-dialog.tsx'
import type { Place } from '../../web/queries.ts'
import { NameDialog } from '../../web/ui/form-dialog.tsx'
import { MenuItem, Popover } from '../../web/ui/overlay.tsx'
import { Refused } from '../../web/ui/states.tsx'
import { StopDialog } from '../../policies/deployments/stop-dialogs.tsx'
import { useAgents } from './queries.ts'

interface Props {
  place: Place
  /** The client's id of the agent, or its name if it has no id. */
  id: string
  agent: { id: string; name: string }
  className: string
}

/** Acts on an agent for approvers and admins. */
export function AgentMenu({ place, id, agent, className }: Props) {
  const [open, setOpen] = useState<'stop' | 'rename' | 'erase' | null>(null)
  const environmentId = place.environment.id
  const mayChange = place.may('admin')
  const { data } = useAgents(environmentId, mayChange)
  const listed = data?.find((one) => one.id === agent.id)
  const isArchived = listed !== undefined && listed.archivedAt !== null
  const agentRequest = { params: { environmentId, agentId: agent.id } }
  const moving = useMutation({
    mutationFn: () => (isArchived ? api.restoreAgent(agentRequest) : api.archiveAgent(agentRequest)),
  })
  if (!place.may('approver')) return null
  return (
    <>
      <Popover label="More" className={className} panelClassName="w-56 p-1">
        <MenuItem onClick={() => setOpen('stop')}>Stop this agent…</MenuItem>
        {listed?.agentId && <MenuItem onClick={() => setOpen('rename')}>Rename…</MenuItem>}
        {listed && <MenuItem onClick={() => moving.mutate()}>{isArchived ? 'Restore' : 'Archive'}</MenuItem>}
        {mayChange && <MenuItem onClick={() => setOpen('erase')}>Erase this agent…</MenuItem>}
      </Popover>
      <Refused error={moving.error} className="w-full" />
      {open === 'rename' && (
        <NameDialog
          title="Rename the agent"
          act="Rename"
          hint={`It reports the name ${listed?.reportedName ?? agent.name}.`}
          name={agent.name}
          save={(name) => api.renameAgent({ ...agentRequest, body: { name } })}
          onClose={() => setOpen(null)}
        />
      )}
      {open === 'stop' && (
        <StopDialog
          environmentId={environmentId}
          subject={{ scope: 'agent', target: id }}
          onClose={() => setOpen(null)}
        />
      )}
      {open === 'erase' && <EraseDialog place={place} subject={{ kind: 'agent', id }} onClose={() => setOpen(null)} />}
    </>
  )
}
