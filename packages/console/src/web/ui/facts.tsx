import type { ReactNode } from 'react'

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
