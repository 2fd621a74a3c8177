import { runName } from '../../web/text/format.ts'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { UrgentAlerts } from '../../messages/alert-state.tsx'
import { GetStartedLink } from '../../web/ui/button.tsx'
import { RunStatusChip } from '../run-status.tsx'
import { RangeChoice } from '../../web/ui/range-choice.tsx'
import { orDefault, readRange } from '../../web/address.ts'
import { Section } from '../../web/ui/section.tsx'
import { Empty, PagePending, isBlocking, Trouble } from '../../web/ui/states.tsx'
import { Time } from '../../web/text/times.tsx'
import { useTitle } from '../../web/ui/browser.ts'
import { AgentsOfTime } from './agents-of-time.tsx'
import { LostRequests, NeedsAPerson, Row } from './needs-a-person.tsx'
import { OpenIssues } from './open-issues.tsx'
import { OVERVIEW_SINCE, useNewestRuns } from './queries.ts'
import { RunsOfTime } from './runs-of-time.tsx'
import { WhatIsWrong } from './what-is-wrong.tsx'

const route = getRouteApi('/w/$workspace/$environment')
const page = getRouteApi('/w/$workspace/$environment/')

export function OverviewPage() {
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const range = orDefault(readRange(page.useSearch()), OVERVIEW_SINCE)
  const newest = useNewestRuns(place.environment.id)
  useTitle('Overview')

  if (isBlocking(newest.error, newest.data)) return <Trouble error={newest.error} retry={() => void newest.refetch()} />
  if (!newest.data) return <PagePending />
  if (newest.data.items.length === 0) {
    return (
      <>
        <div className="mx-auto w-full max-w-6xl px-4 sm:px-5">
          <LostRequests />
        </div>
        <Empty title={`Nothing has been recorded in ${place.environment.name} yet`} action={<GetStartedLink />}>
          Record the first event of an agent, and this page shows what waits for you, what goes wrong, and what it
          costs.
        </Empty>
      </>
    )
  }
  return (
    <div className="mx-auto w-full max-w-6xl px-4 pb-12 sm:px-5">
      <div className="flex flex-wrap items-center justify-between gap-3 pt-5">
        <h1 className="text-xl font-semibold">Overview</h1>
        <RangeChoice
          label="Period"
          range={range}
          byDefault={OVERVIEW_SINCE}
          onChange={(chosen) => void navigate({ to: '.', search: chosen, replace: true })}
        />
      </div>
      <UrgentAlerts />
      <LostRequests />
      <WhatIsWrong range={range} />
      <NeedsAPerson range={range} />
      <RunsOfTime range={range} />
      <div className="mt-6 grid grid-cols-1 gap-x-8 gap-y-6 lg:grid-cols-2">
        <OpenIssues />
        <AgentsOfTime range={range} />
        <NewestRuns />
      </div>
    </div>
  )
}

function NewestRuns() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const { data, error } = useNewestRuns(place.environment.id)
  return (
    <Section title="Newest runs" error={error} className="lg:col-span-2">
      {data?.items.map((run) => (
        <Row
          key={run.id}
          link={(props) => (
            <Link to="/w/$workspace/$environment/runs/$runId" params={{ ...params, runId: run.runId }} {...props} />
          )}
          name={runName(run)}
          note={run.agent.name}
          aside={
            <>
              <span className="w-26">
                <RunStatusChip run={run} />
              </span>
              <span className="w-18 text-right whitespace-nowrap">
                <Time at={run.startedAt} />
              </span>
            </>
          }
        />
      ))}
    </Section>
  )
}
