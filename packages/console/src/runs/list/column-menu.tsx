import type { RunColumn } from '@tacho/contract/runs/run-view.ts'
import { RUN_COLUMNS } from '@tacho/contract/engine/words.ts'
import { Popover } from '../../web/ui/popover.tsx'
import { columnWord } from './columns.ts'

interface ColumnMenuProps {
  columns: readonly RunColumn[]
  onChange: (columns: readonly RunColumn[]) => void
}

export function ColumnMenu({ columns, onChange }: ColumnMenuProps) {
  const toggle = (column: RunColumn) =>
    onChange(RUN_COLUMNS.filter((one) => (one === column) !== columns.includes(one)))
  return (
    <Popover label="Columns" className="hidden sm:block" panelClassName="w-48 p-2">
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
    </Popover>
  )
}
