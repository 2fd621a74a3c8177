import { useId, type ReactNode } from 'react'

/** A button with a panel below it: the browser's own popover, which closes on Escape and on a click elsewhere. */
export function Menu({ label, face, children }: { label: string; face: ReactNode; children: ReactNode }) {
  const id = useId()
  return (
    <div className="menu relative">
      <button type="button" popoverTarget={id} className="block rounded-full">
        {face}
        <span className="sr-only">{label}</span>
      </button>
      <div
        id={id}
        popover="auto"
        className="fixed inset-auto top-11 right-3 w-64 rounded-lg border border-line bg-raised p-1 text-ink shadow-xl"
        onClick={(event) => {
          if (event.target instanceof Element && event.target.closest('[data-closes]'))
            event.currentTarget.hidePopover()
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

/** Saves a file of the server. */
export function MenuLink({ href, children }: { href: string; children: ReactNode }) {
  return (
    <a href={href} download data-closes className={ITEM}>
      {children}
    </a>
  )
}
