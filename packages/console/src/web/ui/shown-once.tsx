import { Button } from './button.tsx'
import { Code } from './code.tsx'
import { Dialog } from './dialog.tsx'

interface ShownOnceProps {
  title: string
  /** What it is for, and to whom it may be given. */
  note: string
  label: string
  text: string
  onClose: () => void
}

/** A new secret. The server cannot show it again, so only the button closes the dialog. */
export function ShownOnce({ title, note, label, text, onClose }: ShownOnceProps) {
  return (
    <Dialog title={title} onClose={onClose} isFirm>
      <div className="flex flex-col gap-3 p-5">
        <h2 className="text-lg font-semibold">{title}</h2>
        <p className="text-sm text-soft">{note}</p>
        <Code label={label} text={text} />
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
