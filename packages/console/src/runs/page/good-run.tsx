import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { runLength } from '@tacho/contract/runs/run-activity.ts'
import { CallError } from '@tacho/client/throwing.ts'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { api, operator } from '../../web/api.ts'
import { environmentsQuery } from '../../web/queries.ts'
import { counted, duration, percent, plainText, runName } from '../../web/text/format.ts'
import { ShownText } from '../../web/text/shown-text.tsx'
import { Time, useNow } from '../../web/text/times.tsx'
import { Button } from '../../web/ui/button.tsx'
import { useKeys } from '../../web/ui/keys.ts'
import { Dialog } from '../../web/ui/overlay.tsx'
import { Refused } from '../../web/ui/states.tsx'
import { callsOf, comparableRuns, likelyRuns, type Candidate } from './alike-runs.ts'

const route = getRouteApi('/w/$workspace/$environment')
/**
 * Number of completed runs to choose from, the newest; of these, only the ones with the most similar questions are
 * read.
 */
const LOOKED_AT = 50
const STEPS_OF = 8
const STEPS_READ = 200

/**
 * Links to a comparison of a failed run with an earlier completed one that has a similar question and called the same
 * tools, if any.
 */
export function GoodRun({ run }: { run: OperatorRun }) {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const environmentId = place.environment.id
  const compare = useMutation({
    mutationFn: async () => {
      const { agentId, agent, startedAt, title } = run
      const query = { agent: agentId ?? agent.name, status: 'COMPLETED', to: startedAt, limit: LOOKED_AT } as const
      const { items } = await api.listOperatorRuns({ params: { environmentId }, query })
      const stepsOf = async (runId: string) => {
        const steps = { params: { environmentId, runId }, query: { limit: STEPS_READ } }
        return (await api.listEventRows(steps)).items
      }
      const alike = likelyRuns(title, items, STEPS_OF)
      const [failed, ...others] = await Promise.all([
        stepsOf(run.runId),
        ...alike.map(async (one) => ({ run: one, calls: callsOf(await stepsOf(one.runId)) })),
      ])
      return comparableRuns({ title, calls: callsOf(failed, run.failure?.eventId) }, others)
    },
    onSuccess: ({ good }) => {
      if (good)
        void navigate({ to: '/w/$workspace/$environment/compare', params, search: { a: good.runId, b: run.runId } })
    },
  })
  useKeys({ X: { name: 'Compare with a good run', act: () => compare.mutate() } })
  const offered = compare.data?.good === null ? compare.data.candidates : null
  return (
    <>
      <Button
        look="quiet"
        title="Compare with a completed run of this agent that was asked the same and called the same tools; key: X"
        busy={compare.isPending}
        onClick={() => compare.mutate()}
      >
        {/* On a phone, the Compare… button is beside it. */}
        <span>
          <span className="sm:hidden">Good run</span>
          <span className="max-sm:hidden">Compare with a good run</span>
        </span>
      </Button>
      {offered?.length === 0 && <span className="text-sm text-soft">No run of this agent completed before.</span>}
      {offered && offered.length > 0 && (
        <Candidates runId={run.runId} candidates={offered} onClose={() => compare.reset()} />
      )}
      <Refused error={compare.error} />
    </>
  )
}

/** Links to a comparison of a replay with its original. A replay names the original run, but not its environment. */
export function OriginalRun({ run }: { run: OperatorRun }) {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const cache = useQueryClient()
  const navigate = useNavigate()
  const compare = useMutation({
    mutationFn: async () => {
      const runId = String(run.metadata['replayOf'])
      const environments = await cache.ensureQueryData(environmentsQuery(place.workspace.id))
      const inOthersFirst = environments.toSorted(
        (a, b) => Number(a.id === place.environment.id) - Number(b.id === place.environment.id),
      )
      for (const { id: environmentId, name } of inOthersFirst) {
        const result = await operator.readOperatorRun({ params: { environmentId, runId } })
        if (result.ok) return { environment: name, runId: result.value.runId }
        if (result.status !== 404) throw new CallError(result)
      }
      return null
    },
    onSuccess: (original) => {
      if (original === null) return
      const { environment, runId } = original
      const search = {
        a: runId,
        b: run.runId,
        ...(environment !== place.environment.name && { bIn: place.environment.name }),
      }
      void navigate({ to: '/w/$workspace/$environment/compare', params: { ...params, environment }, search })
    },
  })
  return (
    <>
      <Button
        look="quiet"
        title="This run is a replay: compare it with the run that it replays"
        busy={compare.isPending}
        onClick={() => compare.mutate()}
      >
        <span>
          <span className="max-sm:hidden">Compare with its </span>original
        </span>
      </Button>
      {compare.data === null && (
        <span className="text-sm text-soft">No environment of this workspace has the run that it replays.</span>
      )}
      <Refused error={compare.error} />
    </>
  )
}

interface CandidatesProps {
  runId: string
  candidates: readonly Candidate<OperatorRun>[]
  onClose: () => void
}

/** Runs that are less comparable: with another question, or other calls. */
function Candidates({ runId, candidates, onClose }: CandidatesProps) {
  const params = route.useParams()
  const now = useNow()
  const title = 'No completed run is like this one'
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="p-4">
        <h2 className="font-semibold">{title}</h2>
        <p className="mt-1 text-sm text-soft">
          None of the newest was asked the same and called the same tools up to the failure. These come nearest:
        </p>
        <ul className="mt-2">
          {candidates.map(({ run, question, calls }) => (
            <li key={run.id} className="relative border-b border-line px-1 py-2 text-sm last:border-0 hover:bg-hover">
              <Link
                to="/w/$workspace/$environment/compare"
                params={params}
                search={{ a: run.runId, b: runId }}
                title={`${run.title ?? run.runId}\n${run.runId}`}
                className="line-clamp-3 font-medium after:absolute after:inset-0"
              >
                <bdi>
                  <ShownText text={runName(run)} />
                </bdi>
              </Link>
              {run.answer !== null && (
                <span className="line-clamp-2">
                  Answered:{' '}
                  <bdi>
                    <ShownText text={plainText(run.answer)} />
                  </bdi>
                </span>
              )}
              <span className="text-soft">
                <Time at={run.startedAt} />, {counted(run.eventCount, 'step')}, {duration(runLength(run, now))};{' '}
                {calls === 1
                  ? 'the same tools up to the failure'
                  : `${percent(calls, 1)} of the tools before the failure`}
                , {percent(question, 1)} of the words of the question
              </span>
            </li>
          ))}
        </ul>
        <div className="mt-3 flex justify-end">
          <Button onClick={onClose}>Close</Button>
        </div>
      </div>
    </Dialog>
  )
}
