import { getRouteApi, Link } from '@tanstack/react-router'
import { useCallback, useMemo, useState, type ReactNode } from 'react'
import { useQueries, useQuery } from '@tanstack/react-query'
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { runLength } from '@tacho/contract/runs/run-activity.ts'
import { tokensText } from '@tacho/contract/runs/run-text.ts'
import { EraseMenu } from '../../data/erase-dialog.tsx'
import { StopDialog } from '../../policies/deployments/stop-dialogs.tsx'
import { StopsOf } from '../../policies/deployments/stop-notes.tsx'
import { MenuItem } from '../../web/ui/overlay.tsx'
import { type Step, withRows } from '../queries.ts'
import { RunStatusChip } from '../run-status.tsx'
import { StepList } from '../page/step-list.tsx'
import { TranscriptStep } from '../page/transcript-view.tsx'
import { Copy } from '../../web/ui/copy.tsx'
import { Cost } from '../../web/text/figures.tsx'
import { sumCosts } from '../../web/text/costs.ts'
import { compact, counted, duration, number } from '../../web/text/format.ts'
import { useNow, Time } from '../../web/text/times.tsx'
import { Empty, PagePending, Trouble, isBlocking } from '../../web/ui/states.tsx'
import { useTitle } from '../../web/ui/browser.ts'
import { api } from '../../web/api.ts'

const route = getRouteApi('/w/$workspace/$environment/sessions/$sessionId')

/** A step of one of the runs, with its position among all steps. */
interface SessionStep extends Step {
  run: OperatorRun
  /** The event id from the client, which is unique only within its run. */
  ownId: string
  isFirst: boolean
  /** Number of further steps in the run; shown after the run's last step here. */
  more: number
}

/** The runs of a session, in order, shown as one conversation. */
export function SessionPage() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const { sessionId } = params
  const environmentId = place.environment.id
  const { data, error, refetch } = useSessionRuns(environmentId, sessionId)
  const runs = useMemo(() => (data?.items ?? []).toReversed(), [data])
  const parts = useFirstSteps(environmentId, runs)
  const steps = useMemo(() => sessionSteps(parts), [parts])
  const [selected, setSelected] = useState<string | null>(null)
  const row = useCallback(
    (step: Step, isSelected: boolean) => (
      <Row environmentId={environmentId} step={step as SessionStep} isCurrent={isSelected} />
    ),
    [environmentId],
  )
  const [isStopping, setStopping] = useState(false)
  useTitle(sessionId)
  if (isBlocking(error, data)) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <PagePending />
  if (runs.length === 0) return <Empty title="No run of this session">No recorded run names this session.</Empty>
  return (
    <div className="full-height flex flex-col">
      <div className="border-b border-line px-3 py-3 sm:px-5">
        <div className="flex items-center gap-2">
          <h1 className="min-w-0 truncate text-lg font-semibold" title={sessionId}>
            <bdi>{sessionId}</bdi>
          </h1>
          <Copy text={sessionId} label="Copy id" />
          <EraseMenu place={place} subject={{ kind: 'session', id: sessionId }} className="ml-auto">
            {place.may('approver') && <MenuItem onClick={() => setStopping(true)}>Stop this session…</MenuItem>}
          </EraseMenu>
        </div>
        <StopsOf place={place} scope="session" names={[sessionId]} />
        <Sums runs={runs} isAll={data.nextCursor === null} />
      </div>
      {steps.length === 0 ? (
        <PagePending />
      ) : (
        <StepList
          label="Transcript"
          rowPx={96}
          measured
          steps={steps}
          selected={steps.find(({ eventId }) => eventId === selected) ?? null}
          onSelect={(step) => setSelected(step?.eventId ?? null)}
        >
          {row}
        </StepList>
      )}
      {isStopping && (
        <StopDialog
          environmentId={environmentId}
          subject={{ scope: 'session', target: sessionId }}
          onClose={() => setStopping(false)}
        />
      )}
    </div>
  )
}

function Sums({ runs, isAll }: { runs: readonly OperatorRun[]; isAll: boolean }) {
  const { workspace, environment, sessionId } = route.useParams()
  const costs = sumCosts(runs)
  return (
    <p className="tabular mt-1 flex flex-wrap gap-x-4 text-sm text-soft">
      <span>{isAll ? counted(runs.length, 'run') : `the newest ${RUNS_READ} runs`}</span>
      <span>{tokensText(costs.tokens, compact)}</span>
      <span>
        cost <Cost of={costs} />
      </span>
      <Link
        to="/w/$workspace/$environment/runs"
        params={{ workspace, environment }}
        search={{ sessionId }}
        className="link"
      >
        Runs as a list
      </Link>
    </p>
  )
}

function Row({ environmentId, step, isCurrent }: { environmentId: string; step: SessionStep; isCurrent: boolean }) {
  return (
    <>
      {step.isFirst && <RunHead run={step.run} />}
      <TranscriptStep
        environmentId={environmentId}
        runId={step.run.runId}
        eventId={step.ownId}
        step={step}
        after={step.time - Date.parse(step.run.startedAt)}
        isCurrent={isCurrent}
      />
      {step.more > 0 && (
        <div className="mx-auto max-w-3xl px-3 pb-3 text-sm sm:px-0">
          <RunLink run={step.run}>{number(step.more)} more steps in this run</RunLink>
        </div>
      )}
    </>
  )
}

function RunHead({ run }: { run: OperatorRun }) {
  const now = useNow()
  return (
    <header className="border-y border-line bg-side px-3 py-1.5 sm:px-5">
      <div className="mx-auto flex max-w-3xl flex-wrap items-center gap-x-3 gap-y-0.5 text-sm text-soft">
        <RunLink run={run}>{run.runId}</RunLink>
        <RunStatusChip run={run} />
        <bdi className="min-w-0 truncate">{run.agent.name}</bdi>
        <span className="tabular ml-auto">
          <Time at={run.startedAt} /> · {duration(runLength(run, now))}
        </span>
      </div>
    </header>
  )
}

function RunLink({ run, children }: { run: OperatorRun; children: ReactNode }) {
  const { workspace, environment } = route.useParams()
  return (
    <Link
      to="/w/$workspace/$environment/runs/$runId"
      params={{ workspace, environment, runId: run.runId }}
      className="link min-w-0 truncate"
    >
      <bdi>{children}</bdi>
    </Link>
  )
}

/** All steps in one list, sorted by run and then by time. */
function sessionSteps(parts: readonly RunSteps[]): SessionStep[] {
  const all = parts.flatMap(({ run, steps = [] }) =>
    steps.map((step, place) => ({
      ...step,
      run,
      ownId: step.eventId,
      eventId: `${run.id} ${step.eventId}`,
      isFirst: place === 0,
      more: place === steps.length - 1 ? Math.max(0, run.eventCount - steps.length) : 0,
    })),
  )
  return all.map((step, index) => ({ ...step, index }))
}

/** Reads the runs of a session, and the first steps of each. */

const REFRESH_MS = 5_000
/** Maximum number of runs of the session that are read: the newest. */
const RUNS_READ = 50
/** Maximum number of steps to show of each run. The run's page shows all. */
const STEPS_READ = 200

function useSessionRuns(environmentId: string, sessionId: string) {
  return useQuery({
    queryKey: ['runs', environmentId, 'of session', sessionId],
    queryFn: ({ signal }) =>
      api.listOperatorRuns({ params: { environmentId }, query: { sessionId, limit: RUNS_READ } }, { signal }),
    refetchInterval: REFRESH_MS,
  })
}

interface RunSteps {
  run: OperatorRun
  /** Undefined if not read yet. */
  steps: readonly Step[] | undefined
}

/** The first steps of each run, in the order of the runs. They are read again when the run has more events. */
function useFirstSteps(environmentId: string, runs: readonly OperatorRun[]): RunSteps[] {
  return useQueries({
    queries: runs.map(({ runId, eventCount }) => ({
      queryKey: ['first steps', environmentId, runId, Math.min(eventCount, STEPS_READ)],
      queryFn: async ({ signal }: { signal: AbortSignal }) => {
        const query = { limit: STEPS_READ }
        const { items } = await api.listEventRows({ params: { environmentId, runId }, query }, { signal })
        return withRows([], items)
      },
      staleTime: Infinity,
    })),
    combine: (results) => runs.map((run, index) => ({ run, steps: results[index]?.data })),
  })
}
