import { useId } from 'react'
import { columnWord, RUN_COLUMNS, type RunColumn } from './columns.ts'

interface Props {
  columns: readonly RunColumn[]
  onChange: (columns: readonly RunColumn[]) => void
}

/** The browser's own popover: it closes on Escape and on a click elsewhere. */
export function ColumnMenu({ columns, onChange }: Props) {
  const id = useId()
  const toggle = (column: RunColumn) =>
    onChange(RUN_COLUMNS.filter((one) => (one === column) !== columns.includes(one)))
  return (
    <div className="menu ml-auto hidden w-48 text-right sm:block">
      <button type="button" popoverTarget={id} className="field text-soft hover:bg-hover">
        Columns
      </button>
      <fieldset
        id={id}
        popover="auto"
        className="fixed inset-auto w-48 rounded-lg border border-line bg-raised p-2 text-left text-sm text-ink shadow-xl"
      >
        <legend className="sr-only">Columns</legend>
        {RUN_COLUMNS.map((column) => (
          <label key={column} className="flex items-center gap-2 rounded-md px-2 py-1 hover:bg-hover">
            <input
              type="checkbox"
              checked={columns.includes(column)}
              disabled={column === 'run'}
              onChange={() => toggle(column)}
              className="accent-accent"
            />
            {columnWord(column)}
          </label>
        ))}
      </fieldset>
    </div>
  )
}
