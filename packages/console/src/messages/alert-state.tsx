/** The state of alerts, in the settings and on the overview. */
import { useQuery, queryOptions } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { Alert, AlertStatus } from '@tacho/contract/messages/alert.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { DamagedChip, State } from '../web/ui/state.tsx'
import { type StateName } from '../web/text/state-styles.ts'
import { KINDS, shareOf, unpricedNote, valueText, isUrgent, ruleText } from './alert-rule.ts'
import { Time } from '../web/text/times.tsx'
import { api } from '../web/api.ts'

const STATE_OF: Record<AlertStatus, { is: StateName; note: string }> = {
  OK: { is: 'OK', note: 'The condition does not hold' },
  PENDING: { is: 'NEARLY', note: 'The condition holds, but not yet long enough' },
  FIRING: { is: 'FIRING', note: 'The condition holds' },
}

export function AlertState({ alert }: { alert: Alert }) {
  if (alert.damaged)
    return <DamagedChip note="It changed on the disk, and is not checked. Delete it and create it again." />
  if (alert.kind === 'budget') return <BudgetState alert={alert} />
  if (alert.checkedAt === null) return <State is="NOT_CHECKED" />
  return <State {...STATE_OF[alert.status]} />
}

function BudgetState({ alert }: { alert: Alert }) {
  const share = Math.floor(shareOf(alert))
  return <State is={share >= 100 ? 'FIRING' : share >= 80 ? 'NEARLY' : 'OK'}>{usedText(alert)}</State>
}

function usedText(alert: Alert): string {
  const share = `${Math.floor(shareOf(alert))} % used`
  return alert.unpricedCalls > 0 ? `at least ${share}` : share
}

/** A bar for the used part of a budget, with its three marks. */
export function BudgetBar({ alert }: { alert: Alert }) {
  const share = shareOf(alert)
  const fill = share >= 100 ? 'bg-red' : share >= 80 ? 'bg-amber' : 'bg-green'
  const { format } = KINDS.budget
  return (
    <div className="flex items-center gap-3">
      <div
        role="meter"
        aria-label={alert.name}
        aria-valuenow={Math.min(100, Math.round(share))}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuetext={usedText(alert)}
        className="relative h-2 w-full max-w-60 min-w-24 overflow-hidden rounded-full bg-hover"
      >
        <div className={`h-full ${fill}`} style={{ width: `${Math.min(100, share)}%` }} />
        {[50, 80].map((mark) => (
          <span key={mark} className="absolute inset-y-0 w-px bg-edge" style={{ left: `${mark}%` }} />
        ))}
      </div>
      <span className="tabular whitespace-nowrap text-soft" title={unpricedNote(alert)}>
        {alert.value === null ? format(0) : valueText(alert)} of {format(alert.threshold)}
      </span>
    </div>
  )
}

const route = getRouteApi('/w/$workspace/$environment')

/** Alerts that are firing, and budgets that are nearly used. Renders nothing if there are none. */
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
            <span className="min-w-0 truncate text-soft max-sm:whitespace-normal">{ruleText(alert)}</span>
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

const REFRESH_MS = 15_000
const FIRST_CHECK_MS = 1_000

export const alertsQuery = (environmentId: string) =>
  queryOptions({
    queryKey: ['alerts', environmentId],
    queryFn: async () => (await api.listAlerts({ params: { environmentId } })).items,
    refetchInterval: ({ state }) =>
      state.data?.some(({ checkedAt }) => checkedAt === null) ? FIRST_CHECK_MS : REFRESH_MS,
  })

/** Names of agents of the newest runs, by internal id. */
export const agentNamesQuery = (environmentId: string) =>
  queryOptions({
    queryKey: ['agent names', environmentId],
    queryFn: async ({ signal }) => {
      const query = { limit: LIMITS.operatorPageMax }
      const { items } = await api.listOperatorRuns({ params: { environmentId }, query }, { signal })
      return new Map(items.map(({ agent }) => [agent.id, agent.name]))
    },
    staleTime: 60_000,
  })
