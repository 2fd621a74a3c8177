/** What the runs of a time used most, with counts from the sums of usage. Each name filters the list. */
import type { UsagePoint } from '@tacho/contract/operator/usage.ts'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { api } from '../api.ts'
import { compact, counted } from '../ui/format.ts'
import { SINCE, type RunsSearch, type Since } from './search.ts'

const route = getRouteApi('/w/$workspace/$environment')
const HOUR_MS = 3_600_000
const SHOWN = 6
const STALE_MS = 60_000
const BY_DEFAULT: Since = '7d'

/** `sort`: tools and models have calls, the others runs. */
const FACETS = [
  { by: 'agent', head: 'Agents', sort: 'runs', of: ({ runs }) => runs, noun: 'run' },
  { by: 'tool', head: 'Tools', sort: 'events', of: ({ events }) => events, noun: 'call' },
  { by: 'model', head: 'Models', sort: 'events', of: ({ events }) => events, noun: 'call' },
  { by: 'promptVersion', head: 'Prompt versions', sort: 'runs', of: ({ runs }) => runs, noun: 'run' },
] as const satisfies readonly {
  by: 'agent' | 'tool' | 'model' | 'promptVersion'
  head: string
  sort: 'runs' | 'events'
  of: (point: UsagePoint) => number
  noun: string
}[]
type Facet = (typeof FACETS)[number]

interface Props {
  search: RunsSearch
  onChange: (change: RunsSearch) => void
}

export function Facets({ search, onChange }: Props) {
  const since = search.since ?? BY_DEFAULT
  return (
    <div className="grid w-full grid-cols-2 gap-x-6 gap-y-3 rounded-xl border border-line p-3 lg:grid-cols-4">
      {FACETS.map((facet) => (
        <FacetList key={facet.by} facet={facet} since={since} search={search} onChange={onChange} />
      ))}
    </div>
  )
}

function FacetList({ facet, since, search, onChange }: Props & { facet: Facet; since: Since }) {
  const { place } = route.useRouteContext()
  const { by, head, sort, of, noun } = facet
  const { data } = useQuery({
    queryKey: ['facets', place.environment.id, by, since],
    queryFn: ({ signal }) => {
      const to = Date.now()
      const times = { from: new Date(to - SINCE[since] * HOUR_MS).toISOString(), to: new Date(to).toISOString() }
      const query = { ...times, by, step: 'window', sort, limit: SHOWN } as const
      return api.readUsagePoints({ params: { environmentId: place.environment.id }, query }, { signal })
    },
    staleTime: STALE_MS,
    placeholderData: keepPreviousData,
  })
  const points = (data?.items ?? []).filter((point) => of(point) > 0 && point.name !== '')
  const most = Math.max(1, ...points.map(of))
  return (
    <section aria-label={`${head}, ${WORDS[since]}`} className="min-w-0 text-sm">
      <h2 className="mb-1 text-xs text-soft">
        {head}, {WORDS[since]}
      </h2>
      {data && points.length === 0 && <p className="text-soft">None</p>}
      {points.map((point) => {
        const filter = filterBy(by, point)
        const isOn = Object.entries(filter).every(([name, value]) => search[name as keyof RunsSearch] === value)
        return (
          <button
            key={point.key}
            type="button"
            aria-pressed={isOn}
            title={counted(of(point), noun)}
            onClick={() => onChange(isOn ? without(filter) : filter)}
            className="relative flex w-full gap-2 rounded px-1.5 py-0.5 text-left hover:bg-hover aria-pressed:bg-accent-wash aria-pressed:text-accent"
          >
            <span
              aria-hidden
              style={{ width: `${(100 * of(point)) / most}%` }}
              className="absolute inset-y-0 left-0 -z-10 rounded bg-hover"
            />
            <bdi className="min-w-0 flex-1 truncate">{point.name ?? point.key.slice(0, 8)}</bdi>
            <span className="tabular text-soft">{compact(of(point))}</span>
          </button>
        )
      })}
    </section>
  )
}

const WORDS: Record<Since, string> = { '1h': 'last hour', '24h': '24 h', '7d': '7 days', '30d': '30 days' }

function filterBy(by: Facet['by'], { key, name }: UsagePoint): RunsSearch {
  if (by === 'promptVersion') return { promptVersionId: key }
  return { [by]: name ?? key }
}

/** An empty text leaves its filter out. */
const without = (filter: RunsSearch): RunsSearch => Object.fromEntries(Object.keys(filter).map((name) => [name, '']))
