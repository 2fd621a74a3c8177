import type { ReactNode } from 'react'
import { useTitle } from './browser.ts'

interface SectionProps {
  title: string
  note?: ReactNode
  /** The error if this part could not be read. Other parts of the page stay. */
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

/** A sentence for an empty list. */
export function Nothing({ children }: { children: ReactNode }) {
  return <p className="py-2 text-sm text-soft">{children}</p>
}

/** Shown instead of a polling part that could not be read. */
export function Unread() {
  return <Nothing>This could not be read. It is tried again by itself.</Nothing>
}

/** Names and values in two columns. */
export function Facts({ children, className = '' }: { children: ReactNode; className?: string }) {
  return <dl className={`grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1 text-sm ${className}`}>{children}</dl>
}

export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-soft">{name}</dt>
      <dd className="min-w-0">{children}</dd>
    </>
  )
}

interface SectionPageProps {
  title: string
  note: ReactNode
  /** The button that creates a new item. */
  act?: ReactNode
  children: ReactNode
}

/** A page of the settings: title and content. */
export function SectionPage({ title, note, act, children }: SectionPageProps) {
  useTitle(title)
  return (
    <>
      <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3 pt-5 pb-4">
        <div className="max-w-2xl min-w-0">
          <h1 className="text-xl font-semibold">{title}</h1>
          <p className="mt-0.5 text-sm text-soft">{note}</p>
        </div>
        {act}
      </div>
      {children}
    </>
  )
}
