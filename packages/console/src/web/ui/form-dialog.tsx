/** Dialogs with a form: the frame, a confirmation, a name, and a secret that is shown once. */
import { type ReactNode, useState } from 'react'
import { useMutation } from '@tanstack/react-query'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { Button } from './button.tsx'
import { Dialog } from './overlay.tsx'
import { Refused } from './states.tsx'
import { Field } from './field.tsx'
import { Code } from './copy.tsx'

interface FormDialogProps {
  title: string
  /** Label of the main button. */
  act: string
  /** Whether the act cannot be undone. */
  isDanger?: boolean
  isReady?: boolean
  isBusy: boolean
  error: unknown
  onSubmit: () => void
  onClose: () => void
  children: ReactNode
  className?: string
}

/** A dialog that asks for input and runs one act. Shows a refusal in place. */
export function FormDialog(props: FormDialogProps) {
  const { title, act, isDanger, isReady = true, isBusy, error, onSubmit, onClose, children, className } = props
  return (
    <Dialog title={title} onClose={onClose} {...(className && { className })}>
      <form
        className="flex max-h-[85dvh] flex-col"
        onSubmit={(event) => {
          event.preventDefault()
          if (isReady && !isBusy) onSubmit()
        }}
      >
        <h2 className="px-5 pt-5 text-lg font-semibold">{title}</h2>
        <div className="min-h-0 flex-1 overflow-y-auto px-5 py-3">{children}</div>
        <div className="flex flex-wrap items-center justify-end gap-2 border-t border-line px-5 py-3">
          <Refused error={error} className="min-w-0 flex-1 basis-full" />
          <Button look="quiet" onClick={onClose}>
            Cancel
          </Button>
          <Button look={isDanger ? 'danger' : 'accent'} type="submit" busy={isBusy} disabled={!isReady}>
            {act}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

interface ConfirmProps<Result> {
  title: string
  act: string
  /** Describes the effect of the act. */
  children: ReactNode
  run: () => Promise<Result>
  /** Called after success. Default: closes the dialog. */
  onDone?: (result: Result) => void
  onClose: () => void
}

/** Asks before an act that cannot be undone. */
export function Confirm<Result>({ title, act, children, run, onClose, onDone = onClose }: ConfirmProps<Result>) {
  const mutation = useMutation({ mutationFn: run, onSuccess: onDone })
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

interface NameDialogProps {
  title: string
  act?: string
  hint: string
  /** The current name. */
  name?: string
  maxLength?: number
  save: (name: string) => Promise<unknown>
  onClose: () => void
}

/** Asks for the name of a new item, or a new name for an existing one. */
export function NameDialog(props: NameDialogProps) {
  const { title, act = 'Create', hint, name: before = '', maxLength = LIMITS.nameChars, save, onClose } = props
  const [name, setName] = useState(before)
  const saving = useMutation({
    mutationFn: () => save(name.trim()),
    onSuccess: onClose,
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

interface NameFieldProps {
  hint: string
  value: string
  onChange: (name: string) => void
  maxLength?: number
}

/** The first field of a dialog that creates a named item. */
export function NameField({ hint, value, onChange, maxLength = LIMITS.nameChars }: NameFieldProps) {
  return (
    <Field
      label="Name"
      hint={hint}
      value={value}
      onChange={(event) => onChange(event.target.value)}
      maxLength={maxLength}
      autoComplete="off"
      autoFocus
      required
    />
  )
}

interface ShownOnceProps {
  title: string
  /** Describes the purpose of the secret, and who may receive it. */
  note: string
  label: string
  text: string
  warning?: string | null
  onClose: () => void
}

/** Shows a new secret. The server cannot show it again, so only the button closes the dialog. */
export function ShownOnce({ title, note, label, text, warning = null, onClose }: ShownOnceProps) {
  return (
    <Dialog title={title} onClose={onClose} isFirm>
      <div className="flex flex-col gap-3 p-5">
        <h2 className="text-lg font-semibold">{title}</h2>
        <p className="text-sm text-soft">{note}</p>
        <Code label={label} text={text} />
        {warning !== null && <p className="text-sm text-amber">! {warning}</p>}
        <p className="text-sm font-medium text-amber">Copy it now. It is not shown again.</p>
        <div className="flex justify-end">
          <Button look="accent" onClick={onClose}>
            I have it
          </Button>
        </div>
      </div>
    </Dialog>
  )
}
