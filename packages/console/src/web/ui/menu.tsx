import type { ReactNode } from 'react'

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
