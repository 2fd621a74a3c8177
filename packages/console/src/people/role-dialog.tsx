import type { Role } from '@tacho/contract/web/access.ts'
import type { Operator } from '@tacho/contract/people/operator.ts'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../web/ui/button.tsx'
import { FormDialog } from '../web/ui/form-dialog.tsx'
import { RoleChoice } from './role-choice.tsx'

interface RoleDialogProps {
  person: Operator
  /** A person may have no role everywhere. */
  mayBeNone: boolean
  change: (operatorId: string, role: Role | null) => Promise<unknown>
  onSettled: () => Promise<unknown>
  onClose: () => void
}

export function RoleDialog({ person, mayBeNone, change, onSettled, onClose }: RoleDialogProps) {
  const [role, setRole] = useState<Role>(person.role ?? 'viewer')
  const save = useMutation({
    mutationFn: (chosen: Role | null) => change(person.id, chosen),
    onSuccess: onClose,
    onSettled,
  })
  return (
    <FormDialog
      title={`Role of ${person.email}`}
      act="Change role"
      isReady={role !== person.role}
      isBusy={save.isPending}
      error={save.error}
      onSubmit={() => save.mutate(role)}
      onClose={onClose}
    >
      <RoleChoice value={role} onChange={setRole} />
      {mayBeNone && person.role !== null && (
        <Button className="mt-3" busy={save.isPending} onClick={() => save.mutate(null)}>
          No role in every workspace
        </Button>
      )}
    </FormDialog>
  )
}
