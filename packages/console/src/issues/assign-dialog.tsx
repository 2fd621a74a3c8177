import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { allItems } from '@tacho/client/items.ts'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { api } from '../web/api.ts'
import { meQuery } from '../web/queries.ts'
import { Button } from '../web/ui/button.tsx'
import { FormDialog } from '../web/ui/form-dialog.tsx'

interface AssignDialogProps {
  params: { environmentId: string; issueId: string }
  workspaceId: string
  current: string | null
  onClose: () => void
  onDone: () => Promise<void>
}

export function AssignDialog({ params, workspaceId, current, onClose, onDone }: AssignDialogProps) {
  const id = useId()
  const [name, setName] = useState(current ?? '')
  const { data: me } = useQuery(meQuery)
  const { data: people = [] } = useQuery({
    queryKey: ['people', workspaceId],
    queryFn: () => allItems(api.listOperators, { params: { workspaceId }, query: { limit: 200 } }),
  })
  const assign = useMutation({
    mutationFn: (assignee: string | null) => api.assignIssue({ params, body: { assignee } }),
    onSuccess: async () => {
      await onDone()
      onClose()
    },
  })
  const mine = me?.email ?? me?.name
  return (
    <FormDialog
      title="Assign"
      act="Assign"
      isReady={name.trim() !== ''}
      isBusy={assign.isPending}
      error={assign.error}
      onSubmit={() => assign.mutate(name.trim())}
      onClose={onClose}
    >
      <label htmlFor={id} className="mb-1 block text-sm font-medium">
        Name or e-mail
      </label>
      <input
        id={id}
        autoFocus
        list={`${id}-people`}
        autoComplete="off"
        maxLength={LIMITS.assigneeChars}
        value={name}
        onChange={(event) => setName(event.target.value)}
        className="field h-10 w-full text-base"
      />
      <datalist id={`${id}-people`}>
        {people.map((person) => (
          <option key={person.id} value={person.email}>
            {person.name}
          </option>
        ))}
      </datalist>
      <div className="mt-2 flex gap-2">
        {mine !== undefined && mine !== current && (
          <Button onClick={() => assign.mutate(mine)} busy={assign.isPending}>
            Assign to me
          </Button>
        )}
        {current !== null && (
          <Button onClick={() => assign.mutate(null)} busy={assign.isPending}>
            Remove the assignee
          </Button>
        )}
      </div>
    </FormDialog>
  )
}
