import { duration, number } from '../../web/text/format.ts'
import { turnRawMessages, useRawMessages } from '../../web/text/message-text.tsx'
import { VIEWS, type View } from '../address.ts'
import type { FoundSteps } from './step-search.ts'
import type { Range } from './scrubber.tsx'

export const FIND_ID = 'find-in-run'
const NAMES: Record<View, string> = { timeline: 'Timeline', transcript: 'Transcript', table: 'Table' }
const KEYS: Record<View, string> = { timeline: 't', transcript: 'c', table: 'b' }

interface Props {
  view: View
  find: string
  shown: number
  total: number
  search: FoundSteps
  /** Selects the next or previous visible step. */
  onStep: (by: 1 | -1) => void
  isComplete: boolean
  /** The visible part of the run, in milliseconds since its start; null: all of it. */
  zoomedTo: Range | null
  onWhole: () => void
  onChange: (change: { view?: View; find?: string }) => void
}

export function RunToolbar(props: Props) {
  const isRaw = useRawMessages()
  const { view, find, shown, total, search, onStep, isComplete, zoomedTo, onWhole, onChange } = props
  return (
    <div className="flex items-center gap-3 py-2 print:hidden">
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
        placeholder="Search steps and payloads"
        value={find}
        onChange={(event) => onChange({ find: event.target.value })}
        onKeyDown={(event) => {
          if (event.key === 'Escape') event.currentTarget.blur()
          else if (event.key === 'Enter') onStep(event.shiftKey ? -1 : 1)
        }}
        title="Enter: next match, Shift Enter: previous"
        className="field w-full max-w-64 min-w-0"
      />
      {find !== '' && (
        <span className="hidden shrink-0 sm:flex">
          <StepButton label="Previous match" sign="↑" isOff={shown === 0} onClick={() => onStep(-1)} />
          <StepButton label="Next match" sign="↓" isOff={shown === 0} onClick={() => onStep(1)} />
        </span>
      )}
      {zoomedTo && (
        <button type="button" onClick={onWhole} className="tabular link text-sm whitespace-nowrap" title="Key: 0">
          {duration(zoomedTo.from)} to {duration(zoomedTo.to)} ✕
        </button>
      )}
      <button
        type="button"
        aria-pressed={isRaw}
        aria-keyshortcuts="r"
        title="Messages as they were sent, without Markdown. Key: r"
        onClick={turnRawMessages}
        className="ml-auto hidden h-8 rounded-md px-2.5 text-sm whitespace-nowrap text-soft hover:bg-hover hover:text-ink aria-pressed:bg-hover aria-pressed:font-medium aria-pressed:text-ink sm:block"
      >
        Plain text
      </button>
      <span aria-live="polite" className="tabular hidden text-sm whitespace-nowrap text-soft sm:inline">
        {search.error !== null && 'Payloads could not be searched · '}
        {search.isSearching && `${number(search.examined)} of ${number(total)} payloads searched · `}
        {shown !== total && `${number(shown)} of `}
        {number(total)}
        {isComplete ? '' : '…'} {total === 1 ? 'step' : 'steps'}
      </span>
    </div>
  )
}

function StepButton({
  label,
  sign,
  isOff,
  onClick,
}: {
  label: string
  sign: string
  isOff: boolean
  onClick: () => void
}) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      disabled={isOff}
      onClick={onClick}
      className="size-8 rounded-md text-soft hover:bg-hover hover:text-ink disabled:opacity-40"
    >
      {sign}
    </button>
  )
}
