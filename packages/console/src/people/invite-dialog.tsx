import type { Role } from '@tacho/contract/web/access.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { CreatedInvitation, NewInvitation } from '@tacho/contract/people/operator.ts'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { Field } from '../web/ui/field.tsx'
import { FormDialog } from '../web/ui/form-dialog.tsx'
import { RoleChoice } from './role-choice.tsx'

interface InviteDialogProps {
  where: string
  invite: (body: NewInvitation) => Promise<CreatedInvitation>
  onInvited: (invitation: CreatedInvitation) => void
  onClose: () => void
}

export function InviteDialog({ where, invite, onInvited, onClose }: InviteDialogProps) {
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<Role>('viewer')
  const send = useMutation({
    mutationFn: () => invite({ email: email.trim(), role }),
    onSuccess: onInvited,
  })
  return (
    <FormDialog
      title={`Invite a person to ${where}`}
      act="Make the link"
      isReady={email.includes('@')}
      isBusy={send.isPending}
      error={send.error}
      onSubmit={() => send.mutate()}
      onClose={onClose}
    >
      <div className="flex flex-col gap-4">
        <Field
          label="E-mail"
          type="email"
          autoComplete="off"
          maxLength={LIMITS.emailChars}
          value={email}
          onChange={(event) => setEmail(event.target.value)}
          required
          autoFocus
        />
        <RoleChoice value={role} onChange={setRole} />
      </div>
    </FormDialog>
  )
}
