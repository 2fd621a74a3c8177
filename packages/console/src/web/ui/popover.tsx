import { useId, type ReactNode } from 'react'

interface PopoverProps {
  label: string
  /** Shown instead of the label: a sign, or an element that names the button itself. */
  face?: ReactNode
  children: ReactNode
  /** Around the button. */
  className?: string
  buttonClassName?: string
  panelClassName: string
}

/**
 * A button with a panel beside it: the browser's own popover, which closes on Escape and on a click elsewhere. Its button is
 * its anchor (theme.css).
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
