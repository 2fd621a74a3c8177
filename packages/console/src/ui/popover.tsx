import { useId, useRef, type ReactNode } from 'react'

const GAP_PX = 4

interface Props {
  label: string
  /** Shown instead of the label. */
  face?: string
  children: ReactNode
  /** Around the button. */
  className?: string
  /** Class of the panel. */
  panelClassName: string
}

/** A button with a panel below it: the browser's own popover, which closes on Escape and on a click elsewhere. */
export function Popover({ label, face, children, className = '', panelClassName }: Props) {
  const id = useId()
  const panel = useRef<HTMLDivElement>(null)
  return (
    <div className={`menu ${className}`}>
      <button
        type="button"
        popoverTarget={id}
        // A popover knows nothing of its button: it lies in the top layer.
        onClick={({ currentTarget }) => panel.current && putBelow(panel.current, currentTarget)}
        aria-label={label}
        className="field text-soft hover:bg-hover"
      >
        {face ?? label}
      </button>
      <div
        id={id}
        ref={panel}
        popover="auto"
        role="group"
        aria-label={label}
        className={`fixed inset-auto rounded-lg border border-line bg-raised text-left text-sm text-ink shadow-xl ${panelClassName}`}
        onClick={({ target, currentTarget }) => {
          if (target instanceof Element && target.closest('[data-closes]')) currentTarget.hidePopover()
        }}
      >
        {children}
      </div>
    </div>
  )
}

/** With their right edges in line. */
function putBelow(panel: HTMLElement, button: HTMLElement): void {
  const { bottom, right } = button.getBoundingClientRect()
  panel.style.top = `${bottom + GAP_PX}px`
  panel.style.right = `${document.documentElement.clientWidth - right}px`
}
