import { useEffect, useState } from 'react'
import { Button } from '../ui/button.tsx'
import { SINCE, STATUSES, type RunsSearch, type Since } from './search.ts'
import { statusWord } from './status.tsx'

export const SEARCH_ID = 'search-runs'
const TYPING_MS = 250
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
  const set = (change: Partial<Record<keyof RunsSearch, string>>) => {
    const merged = Object.entries({ ...search, ...change }).filter(([, value]) => value !== '')
    onChange(Object.fromEntries(merged))
  }
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
      <TextFilter
        label="Agent"
        placeholder="Agent"
        className="w-36"
        value={search.agent}
        onChange={(agent) => set({ agent })}
      />
      <TextFilter
        label="Session"
        placeholder="Session"
        className="w-36"
        value={search.sessionId}
        onChange={(sessionId) => set({ sessionId })}
      />
      {Object.keys(search).length > 0 && (
        <Button look="quiet" onClick={() => onChange({})}>
          Clear
        </Button>
      )}
    </div>
  )
}

interface TextFilterProps {
  id?: string
  label: string
  placeholder: string
  className: string
  value: string | undefined
  onChange: (text: string) => void
}

/** Takes effect a moment after the last key. */
function TextFilter({ id, label, placeholder, className, value = '', onChange }: TextFilterProps) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (text === value) return
    const timer = setTimeout(() => onChange(text), TYPING_MS)
    return () => clearTimeout(timer)
  }, [text, value, onChange])
  return (
    <input
      id={id}
      type="search"
      aria-label={label}
      placeholder={placeholder}
      value={text}
      onChange={(event) => setText(event.target.value)}
      onKeyDown={(event) => event.key === 'Escape' && event.currentTarget.blur()}
      className={`field ${className}`}
    />
  )
}

interface ChoiceProps {
  label: string
  all: string
  value: string | undefined
  options: readonly (readonly [string, string])[]
  onChange: (value: string) => void
}

function Choice({ label, all, value = '', options, onChange }: ChoiceProps) {
  return (
    <select aria-label={label} value={value} onChange={(event) => onChange(event.target.value)} className="field">
      <option value="">{all}</option>
      {options.map(([option, word]) => (
        <option key={option} value={option}>
          {word}
        </option>
      ))}
    </select>
  )
}
