import { useLayoutEffect, useRef, type ReactNode } from 'react'

interface DialogProps {
  title: string
  onClose: () => void
  children: ReactNode
  className?: string
  /** A click beside it does not close it. */
  isFirm?: boolean
}

/** The browser's own modal dialog: it keeps the focus inside, closes on Escape and gives the focus back. */
export function Dialog({ title, onClose, children, className = 'w-full max-w-lg', isFirm = false }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const dialog = element.current
    dialog?.showModal()
    // Chromium focuses a part that scrolls before the fields in it.
    if (document.activeElement?.matches('dialog div')) {
      dialog?.querySelector<HTMLElement>('input, select, textarea, button')?.focus()
    }
    return () => dialog?.close()
  }, [])
  return (
    <dialog
      ref={element}
      aria-label={title}
      // The event `close` comes a moment later. By then a key may have opened the next dialog.
      onCancel={onClose}
      onClose={(event) => event.currentTarget.open || onClose()}
      onClick={(event) => !isFirm && event.target === event.currentTarget && onClose()}
      className={`rounded-xl border border-line bg-raised shadow-2xl ${className}`}
    >
      {children}
    </dialog>
  )
}
