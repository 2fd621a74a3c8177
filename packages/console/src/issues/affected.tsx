import { getRouteApi, Link } from '@tanstack/react-router'
import { Status } from '../runs/run-status.tsx'
import { More } from '../web/ui/more.tsx'
import { Nothing, Section } from '../web/ui/section.tsx'
import { useAffectedAgents, useAffectedRuns } from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment/issues/$issueId')
const ROW = 'relative flex h-8 items-center gap-3 border-b border-line text-sm last:border-0 hover:bg-hover'

/** Where the issue was detected. */
export function Affected({ environmentId, issueId }: { environmentId: string; issueId: string }) {
  const params = route.useParams()
  const agents = useAffectedAgents(environmentId, issueId)
  const runs = useAffectedRuns(environmentId, issueId)
  return (
    <>
      <Section title="Agents">
        <ul>
          {agents.items.map(({ agentId, name, occurrences }) => (
            <li key={agentId} className={ROW}>
              <Link
                to="/w/$workspace/$environment/agents/$agent"
                params={{ workspace: params.workspace, environment: params.environment, agent: agentId }}
                className="link min-w-0 flex-1 truncate after:absolute after:inset-0"
              >
                <bdi>{name ?? agentId}</bdi>
              </Link>
              <span className="tabular text-soft">{occurrences}×</span>
            </li>
          ))}
        </ul>
        <More list={agents} />
      </Section>
      <Section title="Runs">
        {!runs.isPending && runs.items.length === 0 && <Nothing>No detection names a run.</Nothing>}
        <ul>
          {runs.items.map(({ runId, internalRunId, status, occurrences }) => (
            <li key={runId} className={ROW}>
              {internalRunId === null ? (
                <bdi className="min-w-0 flex-1 truncate text-soft">{runId}</bdi>
              ) : (
                <Link
                  to="/w/$workspace/$environment/runs/$runId"
                  params={{ ...params, runId }}
                  className="link min-w-0 flex-1 truncate after:absolute after:inset-0"
                >
                  <bdi>{runId}</bdi>
                </Link>
              )}
              {status && <Status status={status} />}
              <span className="tabular text-soft">{occurrences}×</span>
            </li>
          ))}
        </ul>
        <More list={runs} />
      </Section>
    </>
  )
}
