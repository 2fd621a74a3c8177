/** Overlays over the page: dialogs, popovers, menus. */
import { useLayoutEffect, useRef, type ReactNode, useId } from 'react'

interface DialogProps {
  title: string
  onClose: () => void
  children: ReactNode
  className?: string
  /** Whether only its own buttons close the dialog. */
  isFirm?: boolean
}

/** The browser's modal dialog: it keeps the focus inside, closes on Escape, and then returns the focus. */
export function Dialog({ title, onClose, children, className = 'w-full max-w-lg', isFirm = false }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const dialog = element.current
    dialog?.showModal()
    // Chromium focuses a scrolling part before the fields in it, so focus the first field.
    if (document.activeElement?.matches('dialog div')) {
      dialog?.querySelector<HTMLElement>('input, select, textarea, button')?.focus()
    }
    // Focus the chosen radio button, so that opening the dialog changes no choice.
    if (document.activeElement?.matches('[type=radio]'))
      dialog?.querySelector<HTMLElement>('[type=radio]:checked')?.focus()
    return () => dialog?.close()
  }, [])
  return (
    <dialog
      ref={element}
      aria-label={title}
      closedby={isFirm ? 'none' : 'closerequest'}
      // The `close` event comes a moment later, when a key may already have opened the next dialog.
      onCancel={(event) => (isFirm ? event.preventDefault() : onClose())}
      onClose={(event) => event.currentTarget.open || onClose()}
      onClick={(event) => !isFirm && event.target === event.currentTarget && onClose()}
      className={`rounded-xl border border-line bg-raised shadow-2xl ${className}`}
    >
      {children}
    </dialog>
  )
}

interface PopoverProps {
  label: string
  /** Content of the button instead of the label: a sign, or an element that contains its own name. */
  face?: ReactNode
  children: ReactNode
  /** Class of the element around the button. */
  className?: string
  buttonClassName?: string
  panelClassName: string
}

/**
 * A button with a panel: the browser's popover, which closes on Escape or a click elsewhere. The panel is anchored to
 * its button (theme.css).
 */
export function Popover(props: PopoverProps) {
  const { label, face, children, className = '', buttonClassName = 'field text-soft hover:bg-hover' } = props
  const id = useId()
  return (
    <div className={`menu ${className}`}>
      <button
        type="button"
        popoverTarget={id}
        aria-label={typeof face === 'string' ? label : undefined}
        className={buttonClassName}
      >
        {face ?? label}
      </button>
      <div
        id={id}
        popover="auto"
        role="group"
        aria-label={label}
        className={`rounded-lg border border-line bg-raised text-left text-sm text-ink shadow-xl ${props.panelClassName}`}
        onClick={({ target, currentTarget }) => {
          if (target instanceof Element && target.closest('[data-closes]')) currentTarget.hidePopover()
        }}
      >
        {children}
      </div>
    </div>
  )
}

const ITEM = 'flex w-full items-center gap-2 rounded-md px-2.5 py-1.5 text-left text-sm hover:bg-hover'

export function MenuItem({ onClick, children }: { onClick: () => void; children: ReactNode }) {
  return (
    <button type="button" data-closes onClick={onClick} className={ITEM}>
      {children}
    </button>
  )
}

/** A menu entry that downloads a file from the server. */
export function MenuLink({ href, children }: { href: string; children: ReactNode }) {
  return (
    <a href={href} download data-closes className={ITEM}>
      {children}
    </a>
  )
}

interface RowMenuProps {
  /** Name of the row's item. */
  name: string
  acts: readonly { word: string; act: () => void }[]
}

/** The menu of a row. It is above the link that covers the row. */
export function RowMenu({ name, acts }: RowMenuProps) {
  if (acts.length === 0) return null
  return (
    <Popover label={`Actions for ${name}`} face="⋯" className="relative z-10 inline-block" panelClassName="w-56 p-1">
      {acts.map(({ word, act }) => (
        <MenuItem key={word} onClick={act}>
          {word}
        </MenuItem>
      ))}
    </Popover>
  )
}
