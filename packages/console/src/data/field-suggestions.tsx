import { useQuery, useQueryClient } from '@tanstack/react-query'
import { searchSettingsQuery } from '../runs/search/queries.ts'
import { counted, number } from '../web/text/format.ts'
import { ShownText } from '../web/text/shown-text.tsx'
import { fieldHitsQuery } from './field-hits.ts'

interface Props {
  environmentId: string
  id: string
  field: string
  onChoose: (field: string) => void
}

/** Suggests the fields in which recorded payloads contain the id. Needs the search index. */
export function FieldSuggestions({ environmentId, id, field, onChoose }: Props) {
  const cache = useQueryClient()
  // Do not trim the id for the search, because an erasure compares it exactly.
  const isEmpty = id.trim() === ''
  const { data: settings } = useQuery(searchSettingsQuery(environmentId))
  const isOn = settings !== undefined && settings.state !== 'OFF' && settings.state !== 'REMOVING'
  const hits = useQuery({ ...fieldHitsQuery(cache, environmentId, id), enabled: isOn && !isEmpty })
  if (settings === undefined || isEmpty) return null
  if (!isOn) return <Note>Search is off, so the fields that have this id cannot be suggested.</Note>
  if (!hits.data) return hits.isFetching ? <Note>Looking for fields with this id…</Note> : null
  const { fields, read, more } = hits.data
  if (read === 0) return <Note>No recorded step has this id in a payload.</Note>
  const steps = `the ${more ? 'newest ' : ''}${counted(read, 'step')} with this id`
  if (fields.length === 0) return <Note>In {steps} it is a part of longer texts, and no field by itself.</Note>
  return (
    <div role="group" aria-label="Fields with this id" className="mt-1 flex flex-wrap items-baseline gap-1.5 text-sm">
      <span className="text-soft">In {steps} it is in</span>
      {fields.map((one) => (
        <button
          key={one.path}
          type="button"
          aria-pressed={one.path === field}
          onClick={() => onChoose(one.path)}
          className="min-h-6 rounded-full border border-edge px-2.5 hover:bg-hover aria-pressed:bg-accent-wash aria-pressed:text-accent"
        >
          <bdi className="font-mono text-xs">
            <ShownText text={one.path} />
          </bdi>
          <span className="text-soft"> · {number(one.steps)}</span>
        </button>
      ))}
    </div>
  )
}

function Note({ children }: { children: React.ReactNode }) {
  return <p className="mt-1 text-sm text-soft">{children}</p>
}
