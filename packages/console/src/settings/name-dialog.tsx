import { LIMITS } from '@tacho/contract/limits.ts'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { Field } from '../ui/field.tsx'
import { FormDialog } from '../ui/form-dialog.tsx'

interface Props {
  title: string
  hint: string
  create: (name: string) => Promise<void>
  onClose: () => void
}

export function NameDialog({ title, hint, create, onClose }: Props) {
  const [name, setName] = useState('')
  const make = useMutation({ mutationFn: () => create(name.trim()), onSuccess: onClose })
  return (
    <FormDialog
      title={title}
      act="Create"
      isReady={name.trim() !== ''}
      isBusy={make.isPending}
      error={make.error}
      onSubmit={() => make.mutate()}
      onClose={onClose}
    >
      <Field
        label="Name"
        hint={hint}
        value={name}
        onChange={(event) => setName(event.target.value)}
        maxLength={LIMITS.nameChars}
        autoComplete="off"
        autoFocus
        required
      />
    </FormDialog>
  )
}
