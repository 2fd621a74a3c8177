import type { ReactNode } from 'react'
import { useTitle } from './title.ts'

interface SectionPageProps {
  title: string
  note: ReactNode
  /** The button that makes a new one. */
  act?: ReactNode
  children: ReactNode
}

/** One page of the settings: what it is about, what there is. */
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
