import type { ReactNode } from 'react'

interface Props {
  title: string
  note?: ReactNode
  error: unknown
  children: ReactNode
  className?: string
}

/** A part of the overview. The other parts stay where one cannot be read. */
export function Card({ title, note, error, children, className }: Props) {
  return (
    <section aria-label={title} className={className}>
      <div className="flex items-baseline justify-between gap-3 border-b border-edge px-1 pb-1.5">
        <h2 className="font-semibold whitespace-nowrap">{title}</h2>
        <span className="tabular truncate text-sm text-soft">{note}</span>
      </div>
      {error ? <Nothing>This could not be read. It is tried again by itself.</Nothing> : children}
    </section>
  )
}

export function Nothing({ children }: { children: ReactNode }) {
  return <p className="px-1 py-3 text-sm text-soft">{children}</p>
}
