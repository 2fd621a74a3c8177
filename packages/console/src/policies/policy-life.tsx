/**
 * The life of a policy in an environment: the next step for a new one; later its requests, the answers to them, and the
 * blocked calls.
 */
import type { Policy } from '@tacho/contract/policies/policy.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import { Trend } from '../issues/trend.tsx'
import { useTrends } from '../issues/queries.ts'
import type { Place } from '../web/queries.ts'
import { counted, duration, number } from '../web/text/format.ts'
import { Time, useNow } from '../web/text/times.tsx'
import { Button } from '../web/ui/button.tsx'
import { Author } from '../web/ui/chip.tsx'
import { Nothing, Section } from '../web/ui/section.tsx'
import { StateText } from '../web/ui/state.tsx'
import { ActDialog } from './deployments/deploy-dialog.tsx'
import { useDeploymentChanges, useInForce } from './deployments/queries.ts'
import { useAnswers, useBlocked, useSimulation } from './queries.ts'
import { SIMULATE_ID } from './simulate.tsx'

const route = getRouteApi('/w/$workspace/$environment')

interface Props {
  place: Place
  policy: Policy
  simulationId: string | undefined
  /** Opens the part of the page with the simulation. */
  onSimulate: () => void
}

export function PolicyLife(props: Props) {
  const { place, policy } = props
  const places = useInForce(place.workspace.id, { kind: 'policy', id: policy.policyId })
  const here = places.find(({ environment }) => environment.id === place.environment.id)
  if (!here?.isRead) return null
  const { deployment } = here
  return (
    <div role="group" aria-label="Life of the policy" className="mt-3 rounded-lg bg-side px-3 py-2 text-sm">
      {deployment === null && policy.archivedAt === null && <NextStep {...props} places={places} />}
      <Answers environment={place.environment} policyId={policy.policyId} since={deployment?.deployedAt ?? null} />
    </div>
  )
}

/** The steps of a new policy: simulate, deploy to one environment, watch. */
function NextStep({
  place,
  policy,
  simulationId,
  onSimulate,
  places,
}: Props & { places: ReturnType<typeof useInForce> }) {
  const item = { kind: 'policy', id: policy.policyId } as const
  const { data: simulation } = useSimulation(place.environment.id, simulationId ?? null)
  const changes = useDeploymentChanges(place.environment.id, item)
  const [isDeploying, setDeploying] = useState(false)
  const result = simulation?.condition === policy.newest.condition ? simulation.result : null
  const { environment } = place
  const inForce = places.filter(({ deployment }) => deployment !== null)
  const elsewhere = inForce.map((one) => one.environment.name).join(', ')
  const toSimulation = () => {
    onSimulate()
    // Focus the element after the part is on screen.
    setTimeout(() => document.getElementById(SIMULATE_ID)?.focus())
  }
  const [newest] = changes.items
  // A person removed the policy, so suggest no next step.
  const removed = newest?.to === null && newest.share === null ? newest : null
  if (changes.isPending || changes.isPlaceholderData) return <p className="h-5" />
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
      <p className="min-w-0 flex-1 basis-64">
        {removed ? (
          <>
            <Author name={removed.by} importedAt={removed.importedAt} /> removed version {removed.from} from{' '}
            <bdi>{environment.name}</bdi> <Time at={removed.at} />: it acts nowhere there.
          </>
        ) : result ? (
          <>
            <StateText is="DONE">Simulated</StateText>: it would have acted on {number(result.hits)} of{' '}
            {counted(result.calls, 'call')}
            {result.failures > 0 && `; ${number(result.failures)} could not be evaluated`}. Next: deploy it to{' '}
            <bdi>{environment.name}</bdi> and watch.
          </>
        ) : (
          <>
            {elsewhere === '' ? (
              'It acts nowhere'
            ) : (
              <>
                It acts in <bdi>{elsewhere}</bdi>, but not
              </>
            )}{' '}
            in <bdi>{environment.name}</bdi> yet. Next: simulate it on recorded calls, then deploy it here and watch.
          </>
        )}
      </p>
      {place.may('admin') && !result && !removed && (
        <Button look="accent" onClick={toSimulation}>
          Go to the simulation
        </Button>
      )}
      {place.may('admin') && (
        <Button look={result && !removed ? 'accent' : 'quiet'} onClick={() => setDeploying(true)}>
          Deploy to {environment.name}…
        </Button>
      )}
      {isDeploying && (
        <ActDialog
          workspaceId={place.workspace.id}
          act={{ kind: 'deploy', environment, deployment: null }}
          item={item}
          name={policy.newest.name}
          newestVersion={policy.newest.version}
          places={places}
          simulation={simulationId === undefined ? undefined : { id: simulationId, environment }}
          onClose={() => setDeploying(false)}
        />
      )}
    </div>
  )
}

interface AnswersProps {
  environment: Place['environment']
  policyId: string
  /** Time since which the policy is in force; null: it is not. */
  since: string | null
}

const COUNTED_MS = 7 * 86_400_000

function Answers({ environment, policyId, since }: AnswersProps) {
  const now = useNow()
  const params = route.useParams()
  const { data } = useAnswers(environment.id, policyId)
  const { data: blocked } = useBlocked(environment.id, policyId)
  const reported = (blocked ?? []).reduce((sum, { occurrences }) => sum + occurrences, 0)
  const list = (status?: 'APPROVED' | 'REJECTED' | 'EXPIRED') =>
    ({
      to: '/w/$workspace/$environment/approvals',
      params,
      search: { show: 'history', ...(status && { status }), policy: policyId },
      className: 'link underline',
    }) as const
  if (data === undefined || blocked === undefined) return since !== null && <p className="h-5" />
  const { asked, blocks } = data
  if (asked === null && reported === 0 && (blocks?.calls ?? 0) === 0) {
    return since === null ? null : (
      <p>
        In force in <bdi>{environment.name}</bdi>, deployed <Time at={since} />. It has neither asked nor blocked
        anything {Date.parse(since) > now - COUNTED_MS ? 'yet' : 'in 7 days'}: this page shows it as soon as it does.
      </p>
    )
  }
  return (
    <ul className="flex flex-col gap-1">
      {asked !== null && (
        <li>
          In 7 days it asked {counted(asked.requests, 'time')}:{' '}
          <Link {...list('APPROVED')}>{number(asked.approved)} approved</Link>
          {asked.byGrant > 0 && `, ${number(asked.byGrant)} by standing approvals`},{' '}
          <Link {...list('REJECTED')}>{number(asked.rejected)} rejected</Link>,{' '}
          <Link {...list('EXPIRED')}>{number(asked.expired)} expired undecided</Link>
          {asked.answerP50 !== null && `; median wait ${duration(asked.answerP50)}`}.
        </li>
      )}
      {asked !== null && asked.contradictions > 0 && (
        <Care>
          People contradict each other: {counted(asked.contradictions, 'input')} was approved in one request and
          rejected in another.
        </Care>
      )}
      {asked !== null && asked.unevaluated > 0 && (
        <Care>{counted(asked.unevaluated, 'request')} only because the condition could not be evaluated.</Care>
      )}
      {blocks !== null && blocks.calls > 0 && (
        <li>
          In 7 days it blocked {blocks.capped && 'at least '}
          {counted(blocks.calls, 'call')}.
        </li>
      )}
      {blocks !== null && blocks.unevaluated > 0 && (
        <Care>{counted(blocks.unevaluated, 'call')} blocked only because the condition could not be evaluated.</Care>
      )}
      {reported > 0 && (
        <li>
          {counted(reported, 'blocked call')} in {counted(blocked.length, 'issue')}, below.
        </li>
      )}
    </ul>
  )
}

const Care = ({ children }: { children: ReactNode }) => (
  <li>
    <StateText is="WARN">{children}</StateText>
  </li>
)

/** Issues about calls that the policy blocked, including held calls that were rejected or never answered. */
export function Blocked({ environmentId, policyId }: { environmentId: string; policyId: string }) {
  const params = route.useParams()
  const { data, error } = useBlocked(environmentId, policyId)
  const trends = useTrends(environmentId, data ?? [])
  return (
    <Section title="What it blocked" error={error}>
      {data?.length === 0 && <Nothing>No blocked call of it has been reported in this environment.</Nothing>}
      <ul>
        {data?.map(({ id, title, occurrences, lastSeenAt }) => (
          <li
            key={id}
            className="relative flex items-center gap-3 border-b border-line py-1.5 text-sm last:border-0 hover:bg-hover"
          >
            <Link
              to="/w/$workspace/$environment/issues/$issueId"
              params={{ ...params, issueId: id }}
              className="min-w-0 flex-1 truncate after:absolute after:inset-0 max-sm:line-clamp-2 max-sm:whitespace-normal max-sm:wrap-anywhere"
            >
              <bdi title={title}>{title}</bdi>
            </Link>
            <Trend days={trends.data?.get(id)} className="h-5 w-16 max-sm:hidden" />
            <span className="tabular">{counted(occurrences, 'time')}</span>
            <span className="text-soft">
              <Time at={lastSeenAt} />
            </span>
          </li>
        ))}
      </ul>
    </Section>
  )
}
