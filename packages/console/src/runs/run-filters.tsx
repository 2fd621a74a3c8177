import { Button } from '../ui/button.tsx'
import { exact } from '../ui/format.ts'
import { changed, Choice, TextFilter } from '../ui/filters.tsx'
import { SINCE, STATUSES, type RunsSearch, type Since } from './search.ts'
import { statusWord } from './status.tsx'

export const SEARCH_ID = 'search-runs'
const SINCE_WORDS: Record<Since, string> = {
  '1h': 'Last hour',
  '24h': 'Last 24 hours',
  '7d': 'Last 7 days',
  '30d': 'Last 30 days',
}

interface Props {
  search: RunsSearch
  onChange: (search: RunsSearch) => void
}

export function RunFilters({ search, onChange }: Props) {
  const set = (change: Partial<Record<keyof RunsSearch, string>>) => onChange(changed(search, change))
  return (
    <div role="search" className="flex flex-wrap items-center gap-2 py-3">
      <TextFilter
        id={SEARCH_ID}
        label="Search runs"
        placeholder="Run, session or agent"
        className="w-full sm:w-64"
        value={search.q}
        onChange={(q) => set({ q })}
      />
      <Choice
        label="Status"
        all="Any status"
        value={search.status}
        options={STATUSES.map((status) => [status, statusWord(status)])}
        onChange={(status) => set({ status })}
      />
      <Choice
        label="Started"
        all="Any time"
        value={search.since}
        options={Object.keys(SINCE).map((since) => [since, SINCE_WORDS[since as Since]])}
        onChange={(since) => set({ since })}
      />
      <TextFilter label="Agent" placeholder="Agent" value={search.agent} onChange={(agent) => set({ agent })} />
      <TextFilter
        label="Session"
        placeholder="Session"
        value={search.sessionId}
        onChange={(sessionId) => set({ sessionId })}
      />
      {search.from !== undefined && (
        <span className="text-sm text-soft">
          started {exact(Date.parse(search.from))}
          {search.to !== undefined && ` to ${exact(Date.parse(search.to))}`}
        </span>
      )}
      {Object.keys(search).length > 0 && (
        <Button look="quiet" onClick={() => onChange({})}>
          Clear
        </Button>
      )}
    </div>
  )
}
