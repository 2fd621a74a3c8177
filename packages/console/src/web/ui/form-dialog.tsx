import type { ReactNode } from 'react'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'
import { Refused } from './refused.tsx'

interface FormDialogProps {
  title: string
  /** The word on the button that does it. */
  act: string
  isReady?: boolean
  isBusy: boolean
  error: unknown
  onSubmit: () => void
  onClose: () => void
  children: ReactNode
  className?: string
}

/** A dialog that asks for something and does one thing with it. A refusal shows in place. */
export function FormDialog(props: FormDialogProps) {
  const { title, act, isReady = true, isBusy, error, onSubmit, onClose, children, className } = props
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
          <Button look="accent" type="submit" busy={isBusy} disabled={!isReady}>
            {act}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
