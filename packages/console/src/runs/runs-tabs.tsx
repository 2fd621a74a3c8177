import { getRouteApi, Link } from '@tanstack/react-router'

const route = getRouteApi('/w/$workspace/$environment')

const TABS = [
  { name: 'All', to: '/w/$workspace/$environment/runs' },
  { name: 'By agent', to: '/w/$workspace/$environment/agents' },
  { name: 'By session', to: '/w/$workspace/$environment/sessions' },
  { name: 'Search', to: '/w/$workspace/$environment/search' },
] as const

/** The same runs: one by one, summed up, or by what their payloads say. */
export function RunsTabs() {
  const params = route.useParams()
  return (
    <nav aria-label="Runs" className="mt-2 flex gap-4 border-b border-line">
      {TABS.map(({ name, to }) => (
        <Link
          key={to}
          to={to}
          params={params}
          activeOptions={{ includeSearch: false }}
          className="-mb-px border-b-2 border-transparent py-1.5 text-sm text-soft hover:text-ink data-[status=active]:border-accent data-[status=active]:font-medium data-[status=active]:text-ink"
        >
          {name}
        </Link>
      ))}
    </nav>
  )
}
