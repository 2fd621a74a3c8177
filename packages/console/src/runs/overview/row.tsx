import type { ReactNode } from 'react'

const ROW =
  'relative flex min-h-10 items-center max-sm:py-1 gap-3 border-b border-line px-1 text-sm last:border-0 hover:bg-hover'

interface LinkProps {
  title: string
  className: string
  children: ReactNode
}

interface RowProps {
  /** Where the row leads. */
  link: (props: LinkProps) => ReactNode
  chip?: ReactNode
  name: string
  note: string
  aside: ReactNode
}

/** A line of the overview, which leads somewhere. */
export function Row({ link, chip, name, note, aside }: RowProps) {
  return (
    <div className={ROW}>
      {chip && <span className="w-32 shrink-0 max-sm:w-auto">{chip}</span>}
      <span className="flex min-w-0 flex-1 gap-x-2 max-sm:flex-col">
        {link({
          title: name,
          className: 'max-w-[65%] truncate max-sm:max-w-full after:absolute after:inset-0',
          children: <bdi>{name}</bdi>,
        })}
        <bdi className="min-w-0 flex-1 truncate text-soft max-sm:text-xs">{note}</bdi>
      </span>
      <span className="flex shrink-0 items-center gap-3 text-soft">{aside}</span>
    </div>
  )
}
