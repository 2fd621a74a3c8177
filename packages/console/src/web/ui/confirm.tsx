import { useMutation } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { FormDialog } from './form-dialog.tsx'

interface ConfirmProps<Result> {
  title: string
  act: string
  /** What will happen. */
  children: ReactNode
  run: () => Promise<Result>
  /** What follows; by default, it closes. */
  onDone?: (result: Result) => void
  /** The list that it changes is read again; also when the act was refused. */
  onSettled: () => Promise<unknown>
  onClose: () => void
}

/** Asks before an act that cannot be undone. */
export function Confirm<Result>({
  title,
  act,
  children,
  run,
  onSettled,
  onClose,
  onDone = onClose,
}: ConfirmProps<Result>) {
  const mutation = useMutation({ mutationFn: run, onSuccess: onDone, onSettled })
  return (
    <FormDialog
      title={title}
      act={act}
      isBusy={mutation.isPending}
      error={mutation.error}
      onSubmit={() => mutation.mutate()}
      onClose={onClose}
    >
      <div className="text-sm text-soft">{children}</div>
    </FormDialog>
  )
}
