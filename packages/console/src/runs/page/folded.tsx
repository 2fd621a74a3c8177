/** Parts of what an event says: a line that opens, and a value by its name. */
import { useState, type ReactNode } from 'react'
import { parsed } from '@tacho/contract/record/payload-reader.ts'
import { JsonTree } from '../../web/text/json-tree.tsx'

interface FoldedProps {
  title: string
  note: string
  aside?: ReactNode
  isFolded: boolean
  mono?: boolean
  children: ReactNode
}

/** One line that opens. What is folded is not in the page. */
export function Folded({ title, note, aside, isFolded, mono = false, children }: FoldedProps) {
  const [isOpen, setOpen] = useState(!isFolded)
  return (
    <div className="rounded-lg border border-line bg-raised">
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="flex w-full items-center gap-2 rounded-lg px-3 py-2 text-left text-sm hover:bg-hover"
      >
        <span aria-hidden className="text-soft">
          {isOpen ? '▾' : '▸'}
        </span>
        <bdi className={`max-w-[60%] shrink-0 truncate font-medium ${mono ? 'font-mono' : ''}`}>{title}</bdi>
        <bdi className={`min-w-0 flex-1 truncate text-soft ${mono ? 'font-mono text-xs' : ''}`}>{note}</bdi>
        {aside}
      </button>
      {isOpen && <div className="border-t border-line px-3 py-2.5">{children}</div>}
    </div>
  )
}

export function Part({ name, value }: { name: string; value: unknown }) {
  if (value === undefined) return null
  return (
    <section className="mt-2 first:mt-0">
      <p className="mb-0.5 text-xs font-medium text-soft">{name}</p>
      <JsonTree value={parsed(value)} />
    </section>
  )
}
