import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { FormDialog } from '../ui/form-dialog.tsx'
import { NameField } from './name-field.tsx'

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
      <NameField hint={hint} value={name} onChange={setName} />
    </FormDialog>
  )
}
