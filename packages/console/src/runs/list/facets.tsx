/** The most frequent names in the runs of a period, with counts from the usage sums. Each name filters the list. */
import type { UsagePoint } from '@tacho/contract/runs/usage.ts'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { api } from '../../web/api.ts'
import { compact, counted } from '../../web/text/format.ts'
import { hourTimes, hoursOf, orDefault, readRange, type Range, type Since } from '../../web/address.ts'
import { rangeText } from '../../web/ui/range-choice.tsx'
import type { RunListAddress } from '../address.ts'

const route = getRouteApi('/w/$workspace/$environment')
const SHOWN = 6
const STALE_MS = 60_000
const BY_DEFAULT: Since = '7d'

/** `sort`: tools and models are sorted by calls, others by runs. */
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
  search: RunListAddress
  onChange: (change: RunListAddress) => void
}

export function Facets({ search, onChange }: Props) {
  const range = orDefault(readRange(search), BY_DEFAULT)
  return (
    <div className="grid w-full grid-cols-2 gap-x-6 gap-y-3 rounded-xl border border-line p-3 lg:grid-cols-4">
      {FACETS.map((facet) => (
        <FacetList key={facet.by} facet={facet} range={range} search={search} onChange={onChange} />
      ))}
    </div>
  )
}

function FacetList({ facet, range, search, onChange }: Props & { facet: Facet; range: Range }) {
  const { place } = route.useRouteContext()
  const { by, head, sort, of, noun } = facet
  const { data } = useQuery({
    queryKey: ['facets', place.environment.id, by, range],
    queryFn: ({ signal }) => {
      const query = {
        ...hourTimes(hoursOf(range, BY_DEFAULT, Date.now())),
        by,
        step: 'window',
        sort,
        limit: SHOWN,
      } as const
      return api.readUsagePoints({ params: { environmentId: place.environment.id }, query }, { signal })
    },
    staleTime: STALE_MS,
    placeholderData: keepPreviousData,
  })
  const points = (data?.items ?? []).filter((point) => of(point) > 0 && point.name !== '')
  const most = Math.max(1, ...points.map(of))
  const words = rangeText(range).toLowerCase()
  return (
    <section aria-label={`${head}, ${words}`} className="min-w-0 text-sm">
      <h2 className="mb-1 text-xs text-soft">
        {head}, {words}
      </h2>
      {data && points.length === 0 && <p className="text-soft">None</p>}
      {points.map((point) => {
        const filter = filterBy(by, point)
        const isOn = Object.entries(filter).every(([name, value]) => search[name as keyof RunListAddress] === value)
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

function filterBy(by: Facet['by'], { key, name }: UsagePoint): RunListAddress {
  if (by === 'promptVersion') return { promptVersionId: key }
  return { [by]: name ?? key }
}

/** Removes filters whose text is empty. */
const without = (filter: RunListAddress): RunListAddress =>
  Object.fromEntries(Object.keys(filter).map((name) => [name, '']))
