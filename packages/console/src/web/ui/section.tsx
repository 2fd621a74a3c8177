import type { ReactNode } from 'react'

interface SectionProps {
  title: string
  note?: ReactNode
  /** Why the part could not be read. The other parts of the page stay. */
  error?: unknown
  children: ReactNode
  className?: string
}

/** A titled part of a page. */
export function Section({ title, note, error, children, className = 'mt-6' }: SectionProps) {
  return (
    <section aria-label={title} className={className}>
      <div className="mb-2 flex flex-wrap items-baseline justify-between gap-x-3 border-b border-line pb-1">
        <h2 className="font-semibold">{title}</h2>
        {note !== undefined && <div className="tabular text-sm text-soft">{note}</div>}
      </div>
      {error ? <Unread /> : children}
    </section>
  )
}

/** A sentence where there is nothing to list. */
export function Nothing({ children }: { children: ReactNode }) {
  return <p className="py-2 text-sm text-soft">{children}</p>
}

/** In the place of a part that polls and could not be read. */
export function Unread() {
  return <Nothing>This could not be read. It is tried again by itself.</Nothing>
}
