import { LIMITS } from '@tacho/contract/limits.ts'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { Field } from '../ui/field.tsx'
import { FormDialog } from '../ui/form-dialog.tsx'

interface Props {
  title: string
  act: string
  /** The name so far. */
  name?: string
  save: (name: string) => Promise<unknown>
  onSettled: () => Promise<unknown>
  onClose: () => void
}

/** Asks for the name of a view. */
export function ViewDialog({ title, act, name: before = '', save, onSettled, onClose }: Props) {
  const [name, setName] = useState(before)
  const saving = useMutation({ mutationFn: () => save(name.trim()), onSuccess: onClose, onSettled })
  return (
    <FormDialog
      title={title}
      act={act}
      isReady={name.trim() !== ''}
      isBusy={saving.isPending}
      error={saving.error}
      onSubmit={() => saving.mutate()}
      onClose={onClose}
    >
      <Field
        label="Name"
        hint="Everyone who can read this environment sees the view."
        value={name}
        onChange={(event) => setName(event.target.value)}
        maxLength={LIMITS.runViewNameChars}
        autoComplete="off"
        autoFocus
        required
      />
    </FormDialog>
  )
}
