import type { Role } from '@tacho/contract/web/access.ts'
import type { CreatedOperatorToken, NewOperatorToken } from '@tacho/contract/people/token.ts'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { FormDialog } from '../web/ui/form-dialog.tsx'
import { AllowedAddressesField, networksIn } from '../tenants/allowed-addresses.tsx'
import { ExpiryField, expiryOf } from '../tenants/credential.tsx'
import { RoleChoice } from './role-choice.tsx'
import { NameField } from '../web/ui/name-field.tsx'

interface Props {
  create: (body: NewOperatorToken) => Promise<CreatedOperatorToken>
  onCreated: (token: CreatedOperatorToken) => void
  onClose: () => void
}

export function NewToken({ create, onCreated, onClose }: Props) {
  const [name, setName] = useState('')
  const [role, setRole] = useState<Role>('viewer')
  const [days, setDays] = useState('90')
  const [allowed, setAllowed] = useState('')
  const make = useMutation({
    mutationFn: () =>
      create({ name: name.trim(), role, expiresAt: expiryOf(days), allowedAddresses: networksIn(allowed) }),
    onSuccess: onCreated,
  })
  return (
    <FormDialog
      title="New operator token"
      act="Create token"
      isReady={name.trim() !== ''}
      isBusy={make.isPending}
      error={make.error}
      onSubmit={() => make.mutate()}
      onClose={onClose}
    >
      <div className="flex flex-col gap-4">
        <NameField hint="The script that will use it" value={name} onChange={setName} />
        <RoleChoice value={role} onChange={setRole} />
        <ExpiryField days={days} onChange={setDays} />
        <AllowedAddressesField value={allowed} onChange={setAllowed} />
      </div>
    </FormDialog>
  )
}
