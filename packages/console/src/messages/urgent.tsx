import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { Time } from '../web/text/time.tsx'
import { isUrgent, ruleText } from './alert-rule.ts'
import { AlertState } from './alert-state.tsx'
import { alertsQuery } from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment')

/** Alerts that fire and budgets that are nearly used. Nothing if all is well. */
export function UrgentAlerts() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const { data = [] } = useQuery(alertsQuery(place.environment.id))
  const urgent = data.filter(isUrgent)
  if (urgent.length === 0) return null
  return (
    <ul aria-label="Alerts" className="mt-4 overflow-hidden rounded-xl border border-line">
      {urgent.map((alert) => (
        <li key={alert.id} className="relative border-b border-line px-4 py-2 text-sm last:border-0 hover:bg-hover">
          <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <AlertState alert={alert} />
            <Link
              to="/w/$workspace/$environment/settings/alerts"
              params={params}
              className="min-w-0 truncate font-medium after:absolute after:inset-0"
            >
              <bdi>{alert.name}</bdi>
            </Link>
            <span className="min-w-0 truncate text-soft">{ruleText(alert)}</span>
            {alert.kind !== 'budget' && (
              <span className="ml-auto text-soft">
                <Time at={alert.since} />
              </span>
            )}
          </span>
        </li>
      ))}
    </ul>
  )
}
