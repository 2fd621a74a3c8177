/** The open issues that affect the most runs, with their trend. Similar issues are shown together. */
import { getRouteApi, Link } from '@tanstack/react-router'
import type { ListedIssue } from '@tacho/contract/issues/issue.ts'
import { useTrends } from '../../issues/queries.ts'
import { Trend } from '../../issues/trend.tsx'
import { counted } from '../../web/text/format.ts'
import { Time } from '../../web/text/times.tsx'
import { Nothing, Section } from '../../web/ui/section.tsx'
import { addedDays, type IssueKind } from './verdicts.ts'
import { Row } from './needs-a-person.tsx'
import { countText, useOpenIssues } from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment')
/** Maximum number of similar issues to name; the others are counted. */
const NAMED = 3

export function OpenIssues() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const environmentId = place.environment.id
  const { data, error } = useOpenIssues(environmentId)
  const trends = useTrends(environmentId, data?.kinds.flatMap(({ issue, others }) => [issue, ...others]) ?? [])
  const note = data && (
    <Link to="/w/$workspace/$environment/issues" params={params} className="link">
      {countText(data)} open
    </Link>
  )
  return (
    <Section title="Open issues" note={note} error={error} className="min-w-0 lg:col-span-2">
      {data?.kinds.length === 0 && (
        <Nothing>
          No issue is open. A failed run, tool or model call opens one, and so does what clients report.
        </Nothing>
      )}
      {data?.kinds.map((kind) => (
        <Kind key={kind.issue.id} of={kind} trends={trends.data} />
      ))}
    </Section>
  )
}

interface KindProps {
  of: IssueKind<ListedIssue>
  trends: ReadonlyMap<string, number[]> | undefined
}

function Kind({ of: { issue, others }, trends }: KindProps) {
  const params = route.useParams()
  const link = (issueId: string) =>
    ({ to: '/w/$workspace/$environment/issues/$issueId', params: { ...params, issueId } }) as const
  return (
    <>
      <Row
        link={(props) => <Link {...link(issue.id)} {...props} />}
        name={issue.title}
        note={`${counted(issue.affectedRuns, 'run')}, ${counted(issue.occurrences, 'time')}`}
        aside={
          <>
            <Trend days={addedDays([issue, ...others].map(({ id }) => trends?.get(id)))} className="h-5 w-16 sm:w-24" />
            <span className="w-16 text-right max-sm:hidden print:w-auto">
              <Time at={issue.lastSeenAt} />
            </span>
          </>
        }
      />
      {others.length > 0 && (
        <p className="border-b border-line px-1 py-1.5 pl-5 text-sm text-soft last:border-0">
          {counted(others.length + 1, 'issue')} look alike:{' '}
          {others.slice(0, NAMED).map((other, index) => (
            <span key={other.id}>
              {index > 0 && ', '}
              <Link {...link(other.id)} className="link underline">
                <bdi>{other.title}</bdi>
              </Link>{' '}
              ({counted(other.affectedRuns, 'run')})
            </span>
          ))}
          {others.length > NAMED && `, and ${others.length - NAMED} more`}
        </p>
      )}
    </>
  )
}
