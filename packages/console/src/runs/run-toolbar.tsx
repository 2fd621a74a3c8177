import { duration, number } from '../ui/format.ts'
import { VIEWS, type View } from './search.ts'
import type { Range } from './zoom.ts'

export const FIND_ID = 'find-in-run'
const NAMES: Record<View, string> = { timeline: 'Timeline', transcript: 'Transcript', table: 'Table' }
const KEYS: Record<View, string> = { timeline: 't', transcript: 'c', table: 'b' }

interface Props {
  view: View
  find: string
  shown: number
  total: number
  isComplete: boolean
  /** The part of the run that is shown, in milliseconds since its start; null: all of it. */
  zoomedTo: Range | null
  onWhole: () => void
  onChange: (change: { view?: View; find?: string }) => void
}

export function RunToolbar({ view, find, shown, total, isComplete, zoomedTo, onWhole, onChange }: Props) {
  return (
    <div className="flex items-center gap-3 py-2">
      <div role="group" aria-label="View" className="flex shrink-0 rounded-lg bg-hover p-0.5">
        {VIEWS.map((name) => (
          <button
            key={name}
            type="button"
            aria-pressed={name === view}
            aria-keyshortcuts={KEYS[name]}
            onClick={() => onChange({ view: name })}
            className="h-7 rounded-md px-2.5 text-sm text-soft hover:text-ink aria-pressed:bg-page aria-pressed:font-medium aria-pressed:text-ink aria-pressed:shadow-sm"
          >
            {NAMES[name]}
          </button>
        ))}
      </div>
      <input
        id={FIND_ID}
        type="search"
        aria-label="Search in the run"
        placeholder="Search steps"
        value={find}
        onChange={(event) => onChange({ find: event.target.value })}
        onKeyDown={(event) => event.key === 'Escape' && event.currentTarget.blur()}
        className="field w-full max-w-56 min-w-0"
      />
      {zoomedTo && (
        <button type="button" onClick={onWhole} className="tabular link text-sm whitespace-nowrap" title="Key: 0">
          {duration(zoomedTo.from)} to {duration(zoomedTo.to)} ✕
        </button>
      )}
      <span aria-live="polite" className="tabular ml-auto hidden text-sm whitespace-nowrap text-soft sm:inline">
        {shown !== total && `${number(shown)} of `}
        {number(total)}
        {isComplete ? '' : '…'} {total === 1 ? 'step' : 'steps'}
      </span>
    </div>
  )
}
