import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { FormDialog } from './form-dialog.tsx'
import { NameField } from './name-field.tsx'

interface NameDialogProps {
  title: string
  act?: string
  hint: string
  /** The name so far. */
  name?: string
  maxLength?: number
  save: (name: string) => Promise<unknown>
  onSettled?: () => Promise<unknown>
  onClose: () => void
}

/** Asks for the name of a new thing, or for a new name. */
export function NameDialog(props: NameDialogProps) {
  const {
    title,
    act = 'Create',
    hint,
    name: before = '',
    maxLength = LIMITS.nameChars,
    save,
    onSettled,
    onClose,
  } = props
  const [name, setName] = useState(before)
  const saving = useMutation({
    mutationFn: () => save(name.trim()),
    onSuccess: onClose,
    ...(onSettled && { onSettled }),
  })
  return (
    <FormDialog
      title={title}
      act={act}
      isReady={name.trim() !== '' && name.trim() !== before}
      isBusy={saving.isPending}
      error={saving.error}
      onSubmit={() => saving.mutate()}
      onClose={onClose}
    >
      <NameField hint={hint} value={name} onChange={setName} maxLength={maxLength} />
    </FormDialog>
  )
}
