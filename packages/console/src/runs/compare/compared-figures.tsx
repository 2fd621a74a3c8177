import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { whyEnded } from '@tacho/contract/issues/failure.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import { RunStatusChip } from '../run-status.tsx'
import { Cost } from '../../web/text/figures.tsx'
import { costsOf, costText, wholeCost } from '../../web/text/costs.ts'
import { compact, duration, money, number, runName } from '../../web/text/format.ts'

const route = getRouteApi('/w/$workspace/$environment/compare')

/** The two runs as wholes. */
export function Sums({ a, b }: { a: OperatorRun; b: OperatorRun }) {
  const params = route.useParams()
  const { place, otherPlace } = route.useRouteContext()
  const [environment, otherEnvironment] = [place.environment.name, otherPlace.environment.name]
  const rows: [name: string, of: (run: OperatorRun) => number | null, format: (value: number) => string][] = [
    ['Length', lengthOf, duration],
    ['Steps', ({ eventCount }) => eventCount, number],
    ['Tokens', ({ usage }) => usage.totalTokens || null, compact],
    ['Cost', costOf, money],
  ]
  return (
    <table aria-label="Sums" className="mt-3 w-full table-fixed text-sm">
      <thead>
        <tr className="border-b border-line text-left">
          <th className="w-20 py-1.5 font-normal text-soft">Run</th>
          {[a, b].map((run, index) => (
            <th key={index} scope="col" className="max-w-0 py-1.5 pr-3 align-top font-medium">
              <span className="flex flex-wrap items-center gap-x-2 gap-y-0.5">
                <Link
                  to="/w/$workspace/$environment/runs/$runId"
                  params={{ ...params, environment: index === 0 ? environment : otherEnvironment, runId: run.runId }}
                  title={run.runId}
                  className="link max-w-full min-w-0 truncate"
                >
                  <bdi>{runName(run)}</bdi>
                </Link>
                <RunStatusChip run={run} />
                {environment !== otherEnvironment && (
                  <bdi className="font-normal text-soft">in {index === 0 ? environment : otherEnvironment}</bdi>
                )}
              </span>
              {run.title !== null && (
                <bdi className="block truncate font-mono text-xs font-normal text-soft">{run.runId}</bdi>
              )}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(([name, of, format]) => {
          const [left, right] = [of(a), of(b)]
          const differ = left !== right
          return (
            <tr key={name} className="border-b border-line">
              <th scope="row" className="py-1.5 text-left font-normal text-soft">
                {name}
              </th>
              <td className="py-1.5">{name === 'Cost' ? <Cost of={costsOf(a)} /> : shown(name, left, format)}</td>
              <td className={`py-1.5 ${differ ? 'font-medium' : ''}`}>
                {name === 'Cost' ? <Cost of={costsOf(b)} /> : shown(name, right, format)}
                {left !== null && right !== null && differ && (
                  <span className="ml-2 text-soft">
                    {right > left ? '+' : '−'}
                    {format(Math.abs(right - left))}
                  </span>
                )}
              </td>
            </tr>
          )
        })}
        {[a, b].some((run) => whyEnded(run) !== null) && (
          <tr className="border-b border-line align-top">
            <th scope="row" className="py-1.5 text-left font-normal text-soft">
              Ended
            </th>
            {[a, b].map((run, index) => (
              <td key={index} className="py-1.5 pr-3 [overflow-wrap:anywhere] text-red">
                <bdi>{whyEnded(run)}</bdi>
              </td>
            ))}
          </tr>
        )}
      </tbody>
    </table>
  )
}

function shown(name: string, value: number | null, format: (value: number) => string): string {
  if (value !== null) return format(value)
  return name === 'Length' ? 'running' : 'unknown'
}

/** Null: unknown, or only a part is known. No difference is shown then. */
function costOf(run: OperatorRun): number | null {
  const costs = costsOf(run)
  return costs.unpriced > 0 || costText(costs) === 'unknown' ? null : wholeCost(costs)
}

function lengthOf({ startedAt, endedAt }: OperatorRun): number | null {
  return endedAt === null ? null : Date.parse(endedAt) - Date.parse(startedAt)
}
