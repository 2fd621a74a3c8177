import type { ReactNode } from 'react'

export const TONES = {
  plain: 'bg-hover text-soft',
  accent: 'bg-accent-wash text-accent',
  red: 'bg-red-wash text-red',
  amber: 'bg-amber-wash text-amber',
  green: 'bg-green-wash text-green',
  violet: 'bg-violet-wash text-violet',
  cyan: 'bg-cyan-wash text-cyan',
  pink: 'bg-pink-wash text-pink',
  olive: 'bg-olive-wash text-olive',
} as const
export type Tone = keyof typeof TONES

/** A short word. States use `State` instead, because colour must not be the only sign. */
export function Chip({ tone = 'plain', children }: { tone?: Tone; children: ReactNode }) {
  return (
    <span
      // A block, because only a block cuts a long word with dots and keeps its padding.
      className={`inline-block h-5 max-w-full truncate rounded px-1.5 align-middle text-xs leading-5 font-medium [&>[aria-hidden]]:mr-1 ${TONES[tone]}`}
    >
      {children}
    </span>
  )
}

interface Props {
  name: string
  importedAt: string | null
  className?: string
}

/** The author of a change. In an imported record, the name is only what the file claims. */
export function Author({ name, importedAt, className }: Props) {
  return (
    <>
      <bdi className={className} title={name}>
        {name}
      </bdi>
      {importedAt !== null && ' (imported)'}
    </>
  )
}
