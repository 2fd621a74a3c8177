import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { byOutcome, whyEnded } from '@tacho/contract/issues/failure.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useVersionNames } from '../agents/queries.ts'
import { RunStatusChip } from '../run-status.tsx'
import type { Range } from '../../web/address.ts'
import { Cost } from '../../web/text/figures.tsx'
import { costsOf, costText, wholeCost } from '../../web/text/costs.ts'
import { compact, duration, LEAST_MONEY, money, number, runName } from '../../web/text/format.ts'
import { ShownText } from '../../web/text/shown-text.tsx'
import { stateWord } from '../../web/text/state-styles.ts'

const route = getRouteApi('/w/$workspace/$environment/compare')
/** The longest period for which usage is shown. */
const A_YEAR: Range = { since: '365d' }

type Figure = [
  name: string,
  of: (run: OperatorRun) => number | null,
  format: (value: number) => string,
  more: string,
  less: string,
]

const FIGURES: readonly Figure[] = [
  ['Length', lengthOf, duration, 'longer', 'shorter'],
  ['Steps', ({ eventCount }) => eventCount, number, 'more', 'fewer'],
  ['Tokens', ({ usage }) => usage.totalTokens || null, compact, 'more', 'fewer'],
  ['Cost', costOf, money, 'more', 'less'],
]

interface SumsProps {
  a: OperatorRun
  b: OperatorRun
  /** Versions of the policies that decided in each run; undefined: not read yet. */
  policies: [a: readonly string[], b: readonly string[]] | undefined
}

/** Compares two runs as a whole: versions, usage and outcomes. */
export function Sums({ a, b, policies }: SumsProps) {
  const params = route.useParams()
  const { place, otherPlace } = route.useRouteContext()
  const [environment, otherEnvironment] = [place.environment.name, otherPlace.environment.name]
  const [namesA, namesB] = [
    useVersionNames(place.environment.id, A_YEAR),
    useVersionNames(otherPlace.environment.id, A_YEAR),
  ]
  const promptsOf = ({ promptVersionIds }: OperatorRun, names: ReadonlyMap<string, string>) =>
    promptVersionIds.map((id) => names.get(id) ?? id.slice(0, 8)).join(', ')
  const texts: [name: string, a: string, b: string][] = [
    ['Model', a.models.join(', '), b.models.join(', ')],
    ['Prompt', promptsOf(a, namesA), promptsOf(b, namesB)],
    ['Policies', policies?.[0].join(', ') ?? '', policies?.[1].join(', ') ?? ''],
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
                  className="link max-w-full min-w-0 truncate max-sm:line-clamp-3 max-sm:whitespace-normal max-sm:wrap-anywhere"
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
        {texts.map(
          ([name, ...both]) =>
            (name === 'Policies' ? both[0] !== both[1] : both.some((text) => text !== '')) && (
              <tr key={name} className="border-b border-line align-top">
                <th scope="row" className="py-1.5 text-left font-normal text-soft">
                  {name}
                </th>
                {both.map((text, index) => (
                  <td
                    key={index}
                    className={`py-1.5 pr-3 [overflow-wrap:anywhere] ${index === 1 && both[0] !== both[1] ? 'font-medium' : ''}`}
                  >
                    {text === '' ? (
                      <span className="text-soft">none recorded</span>
                    ) : (
                      <bdi>
                        <ShownText text={text} />
                      </bdi>
                    )}
                  </td>
                ))}
              </tr>
            ),
        )}
        {FIGURES.map(([name, of, format, more, less]) => {
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
                  <span className="text-soft">
                    {': '}
                    {name === 'Cost' && Math.abs(right - left) < LEAST_MONEY
                      ? 'about the same'
                      : `${format(Math.abs(right - left))} ${right > left ? more : less}`}
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
              <td key={index} className="py-1.5 pr-3 [overflow-wrap:anywhere]">
                <Ended run={run} />
              </td>
            ))}
          </tr>
        )}
      </tbody>
    </table>
  )
}

/** The run's reason; without one its status, because an empty cell beside the other reason would look like a fault. */
function Ended({ run }: { run: OperatorRun }) {
  const why = whyEnded(run) ?? (run.status === 'FAILED' ? byOutcome(run) : null)
  if (why === null) return <span className="text-soft">{stateWord(run.status)}</span>
  return (
    <bdi className={run.status === 'FAILED' ? 'text-red' : ''}>
      <ShownText text={why} />
    </bdi>
  )
}

function shown(name: string, value: number | null, format: (value: number) => string): string {
  if (value !== null) return format(value)
  return name === 'Length' ? 'running' : 'unknown'
}

/** The run's cost. Null if it is unknown or incomplete; then no difference is shown. */
function costOf(run: OperatorRun): number | null {
  const costs = costsOf(run)
  return costs.unpriced > 0 || costText(costs) === 'unknown' ? null : wholeCost(costs)
}

function lengthOf({ startedAt, endedAt }: OperatorRun): number | null {
  return endedAt === null ? null : Date.parse(endedAt) - Date.parse(startedAt)
}
