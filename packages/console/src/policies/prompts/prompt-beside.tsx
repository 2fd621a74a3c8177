/**
 * Compares the version in force with the previous one: the results of their runs, whether the difference is
 * significant, and how to roll back.
 */
import type { PromptResult } from '@tacho/contract/policies/prompt.ts'
import { endedRuns, failureComparison, isDifferent } from '@tacho/contract/runs/statistics.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import { failedShare } from '../../web/text/figures.tsx'
import { compact, duration, money, number } from '../../web/text/format.ts'
import { Button } from '../../web/ui/button.tsx'
import { StateText } from '../../web/ui/state.tsx'
import { Nothing, Section } from '../../web/ui/section.tsx'
import { ActDialog } from '../deployments/deploy-dialog.tsx'
import { useInForce } from '../deployments/queries.ts'
import { promptResultsQuery } from '../queries.ts'

const route = getRouteApi('/w/$workspace/$environment/prompts/$promptId')

type Counted = Pick<PromptResult, 'version' | 'completed' | 'failed' | 'cancelled'>

/** The version to compare with: the newest one before this version that has ended runs. */
export function versionBefore<Result extends Counted>(results: readonly Result[], version: string): Result | undefined {
  return results
    .filter((result) => Number(result.version) < Number(version) && endedRuns(result) > 0)
    .sort((a, b) => Number(b.version) - Number(a.version))[0]
}

/** Whether a version fails significantly more often than another one. */
export function failsMoreThan(one: Counted, other: Counted): boolean {
  const [a, b] = [one, other].map((of) => ({ part: of.failed, whole: endedRuns(of) })) as [Share, Share]
  return isDifferent(a, b) && a.part / a.whole > b.part / b.whole
}

interface Share {
  part: number
  whole: number
}

const ROWS: readonly [head: string, of: (result: PromptResult) => string][] = [
  ['Runs', ({ runs }) => number(runs)],
  ['Failed', (result) => failedShare(result) || '–'],
  ['Cost a run', ({ costPerRun: { mean } }) => (mean === null ? '–' : money(mean))],
  ['Tokens a run', ({ tokensPerRun: { mean } }) => (mean === null ? '–' : compact(Math.round(mean)))],
  ['Median length', ({ lengthP50Ms }) => (lengthP50Ms === null ? '–' : duration(lengthP50Ms))],
  ['Errors', ({ errors }) => number(errors)],
]

interface Props {
  promptId: string
  name: string
  newestVersion: string
}

export function Beside({ promptId, name, newestVersion }: Props) {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const { workspace, environment } = place
  const places = useInForce(workspace.id, { kind: 'prompt', id: promptId })
  const here = places.find((one) => one.environment.id === environment.id)
  const deployment = here?.deployment ?? null
  const { data, error } = useQuery(promptResultsQuery(environment.id, promptId))
  const [asking, setAsking] = useState<'back' | 'newest' | null>(null)
  const version = deployment?.version ?? data?.items.find(({ runs }) => runs > 0)?.version ?? newestVersion
  const inForce = data?.items.find((result) => result.version === version)
  const earlier = deployment?.earlierVersion ?? null
  // After a rollback, compare with the abandoned version: the results show whether the rollback was right.
  const before = data && (versionBefore(data.items, version) ?? data.items.find((result) => result.version === earlier))
  // Without an earlier deployment here, offer the compared version: it was deployed elsewhere, or before deployments
  // were recorded.
  const target = earlier ?? before?.version ?? null
  const isNewestOut = here?.isRead && deployment?.version !== newestVersion && target !== newestVersion
  const sentence =
    inForce &&
    before &&
    failureComparison({ ...inForce, name: `Version ${version}` }, { ...before, name: `version ${before.version}` })
  const isWorse = inForce !== undefined && before !== undefined && failsMoreThan(inForce, before)
  const offered = isNewestOut ? newestVersion : deployment === null ? null : target
  const offer = data?.items.find((result) => result.version === offered)
  const isOfferWorse = inForce !== undefined && offer !== undefined && failsMoreThan(offer, inForce)
  const shown = [before, inForce]
    .filter((result) => result !== undefined)
    .sort((a, b) => Number(a.version) - Number(b.version))
  return (
    <Section
      title={
        !here?.isRead
          ? `In ${environment.name}`
          : deployment === null
            ? `Not in force in ${environment.name}`
            : `v${version} in force in ${environment.name}`
      }
      error={data ? null : error}
      className="mt-5 min-w-0"
    >
      {data && shown.every(({ runs }) => runs === 0) && (
        <Nothing>No run in {environment.name} names a version yet.</Nothing>
      )}
      {shown.some(({ runs }) => runs > 0) && (
        <table aria-label="Versions beside each other" className="tabular w-full text-sm">
          <thead>
            <tr className="border-b border-line text-right text-soft">
              <th scope="col" className="text-left font-normal">
                <span className="sr-only">Figure</span>
              </th>
              {shown.map((result) => (
                <th key={result.version} scope="col" className="py-1 pl-3 font-medium text-ink">
                  <Link
                    to="/w/$workspace/$environment/runs"
                    params={{ workspace: params.workspace, environment: params.environment }}
                    search={{ promptVersionId: result.versionId }}
                    className="link"
                  >
                    v{result.version}
                  </Link>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {ROWS.map(([head, of]) => (
              <tr key={head} className="border-b border-line">
                <th scope="row" className="py-1 text-left font-normal text-soft">
                  {head}
                </th>
                {shown.map((result) => (
                  <td
                    key={result.version}
                    className={`py-1 pl-3 text-right ${head === 'Failed' && isWorse && result === inForce ? 'font-medium text-amber' : ''}`}
                  >
                    {head === 'Failed' && isWorse && result === inForce && <span aria-hidden>▲ </span>}
                    {of(result)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {sentence && <p className={`mt-2 text-sm ${isWorse ? 'text-amber' : 'text-soft'}`}>{sentence}</p>}
      {isNewestOut && place.may('admin') && (
        <Button className="mt-3 mr-2" onClick={() => setAsking('newest')}>
          Deploy v{newestVersion}…
        </Button>
      )}
      {deployment !== null && target !== null && place.may('admin') && (
        <Button className="mt-3" onClick={() => setAsking('back')}>
          {Number(target) > Number(version) ? 'Deploy' : 'Roll back to'} v{target}
          {Number(target) > Number(version) && ' again'}
        </Button>
      )}
      {isOfferWorse && place.may('admin') && (
        <p className="mt-2 text-sm">
          <StateText is="WARN">
            v{offered} failed more often than v{version}, beyond chance.
          </StateText>
        </p>
      )}
      {asking !== null && (
        <ActDialog
          workspaceId={workspace.id}
          act={
            asking === 'newest' || deployment === null
              ? { kind: 'deploy', environment, deployment }
              : earlier === null && target !== null
                ? { kind: 'deploy', environment, deployment, version: target }
                : { kind: 'roll back', environment, deployment }
          }
          item={{ kind: 'prompt', id: promptId }}
          name={name}
          newestVersion={newestVersion}
          places={places}
          onClose={() => setAsking(null)}
        />
      )}
    </Section>
  )
}
