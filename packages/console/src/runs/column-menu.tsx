import type { RunColumn } from '@tacho/contract/operator/run-view.ts'
import { RUN_COLUMNS } from '@tacho/contract/words.ts'
import { useId, useRef } from 'react'
import { putBelow } from '../ui/put-below.ts'
import { columnWord } from './columns.ts'

interface Props {
  columns: readonly RunColumn[]
  onChange: (columns: readonly RunColumn[]) => void
}

/** The browser's own popover: it closes on Escape and on a click elsewhere. */
export function ColumnMenu({ columns, onChange }: Props) {
  const id = useId()
  const panel = useRef<HTMLFieldSetElement>(null)
  const toggle = (column: RunColumn) =>
    onChange(RUN_COLUMNS.filter((one) => (one === column) !== columns.includes(one)))
  return (
    <div className="menu hidden sm:block">
      <button
        type="button"
        popoverTarget={id}
        // A popover knows nothing of its button: it lies in the top layer.
        onClick={({ currentTarget }) => panel.current && putBelow(panel.current, currentTarget)}
        className="field text-soft hover:bg-hover"
      >
        Columns
      </button>
      <fieldset
        id={id}
        ref={panel}
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
