import type { PromptResult } from '@tacho/contract/policies/prompt.ts'
import { useQuery } from '@tanstack/react-query'
import { scoreSumText } from '../../runs/scores/score-sums.tsx'
import { DataTable, type Column } from '../../web/ui/data-table.tsx'
import { costNote, costsOf } from '../../web/text/costs.ts'
import { endedRuns, versionComparison } from '@tacho/contract/runs/statistics.ts'
import { Failed } from '../../web/text/figures.tsx'
import { compact, counted, money, number, percent, percentiles } from '../../web/text/format.ts'
import { Empty, Skeleton, Trouble, isBlocking } from '../../web/ui/states.tsx'
import { Time } from '../../web/text/times.tsx'
import { Chip } from '../../web/ui/chip.tsx'
import { promptResultsQuery } from '../queries.ts'

/**
 * Maximum number of runs that the service sums up for a version: LIMITS.promptResultRuns. Importing the limits would
 * make the page larger.
 */
const MOST_RUNS = 1_000

/** Results of the runs of each version in this environment, side by side. */
export function Results({ environment, promptId }: { environment: { id: string; name: string }; promptId: string }) {
  const { data, error, refetch } = useQuery(promptResultsQuery(environment.id, promptId))
  if (isBlocking(error, data)) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <Skeleton className="mt-5 h-40" />
  const used = data.items.filter(({ runs }) => runs > 0)
  if (used.length === 0) {
    return (
      <Empty title={`No run in ${environment.name} names a version yet`}>
        Results appear here as soon as events carry the version id as <code className="font-mono">promptVersionId</code>
        . The SDK does that for each event after <code className="font-mono">tacho.prompt(…)</code>.
      </Empty>
    )
  }
  const comparison = versionComparison(used)
  const columns = COLUMNS.filter(({ isUsed }) => isUsed === undefined || used.some(isUsed))
  return (
    <section aria-label="Results" className="mt-5">
      {comparison !== null && <p className="mb-3">{comparison}</p>}
      <DataTable label="Results by version" columns={columns} items={data.items} keyOf={({ versionId }) => versionId} />
      <p className="mt-2 text-sm text-soft">
        Of events in {environment.name} that name a version: tokens, cost, errors and latency are those of these events,
        outcome and length those of their runs.
        {used.some(({ runs }) => runs === MOST_RUNS) &&
          ` Only the newest ${number(MOST_RUNS)} runs of each version are counted.`}
      </p>
    </section>
  )
}

interface ResultColumn extends Column<PromptResult> {
  /** The column is hidden if no version has such a value, because the names need the room. */
  isUsed?: (result: PromptResult) => boolean
}

const COLUMNS: readonly ResultColumn[] = [
  {
    head: 'Version',
    main: true,
    cell: ({ version, note, runs }) => (
      <>
        <span className="font-medium whitespace-nowrap">version {version}</span> {runs === 0 && <Chip>not used</Chip>}
        <span dir="auto" title={note ?? undefined} className="block truncate text-xs text-soft">
          {note ?? ''}
        </span>
      </>
    ),
  },
  { head: 'Runs', right: true, cell: ({ runs }) => number(runs) },
  { head: 'Completed', right: true, wide: true, cell: (result) => share(result, result.completed) },
  {
    head: 'Failed',
    right: true,
    cell: (result) => <Failed of={result} />,
  },
  { head: 'Errors', right: true, wide: true, cell: ({ errors }) => number(errors) },
  {
    head: 'Blocked',
    right: true,
    wide: true,
    isUsed: ({ blocked }) => blocked > 0,
    cell: ({ blocked }) => number(blocked),
  },
  {
    head: 'Approvals',
    right: true,
    wide: true,
    isUsed: ({ approvals }) => approvals > 0,
    cell: ({ approvals }) => number(approvals),
  },
  {
    head: 'Length p50 / p95',
    right: true,
    wide: true,
    cell: ({ lengthP50Ms: p50Ms, lengthP95Ms: p95Ms }) =>
      p50Ms === null || p95Ms === null ? '' : percentiles({ p50Ms, p95Ms, isApproximate: false }),
  },
  { head: 'Model p50 / p95', right: true, wide: true, cell: ({ llmLatency }) => percentiles(llmLatency) },
  { head: 'Tool p50 / p95', right: true, wide: true, cell: ({ toolLatency }) => percentiles(toolLatency) },
  {
    head: 'Tokens a run',
    right: true,
    wide: true,
    cell: ({ runs, tokensPerRun }) =>
      runs > 0 && <Mean of={tokensPerRun} runs={runs} format={(tokens) => compact(Math.round(tokens))} />,
  },
  {
    head: 'Cost a run',
    right: true,
    cell: ({ runs, costPerRun, estimatedCost, ...result }) =>
      runs > 0 && (
        <span title={costNote(costsOf({ ...result, estimatedCost })) || undefined}>
          <Mean of={costPerRun} runs={runs} format={(cost) => `${estimatedCost === null ? '' : '≈ '}${money(cost)}`} />
        </span>
      ),
  },
  {
    head: 'Scores',
    wide: true,
    isUsed: ({ scores }) => scores.length > 0,
    cell: ({ scores }) => <bdi>{scores.map(scoreSumText).join(', ')}</bdi>,
  },
  { head: 'Last used', wide: true, cell: ({ lastAt }) => lastAt && <Time at={lastAt} /> },
]

/** The share among the ended runs. */
function share(result: PromptResult, count: number): string {
  const ended = endedRuns(result)
  return ended === 0 ? '' : `${number(count)} (${percent(count, ended)})`
}

interface MeanProps {
  of: PromptResult['costPerRun']
  runs: number
  format: (mean: number) => string
}

/** A mean over the runs with a known figure. The others would make a version look cheaper. */
function Mean({ of: { mean, runs: known }, runs, format }: MeanProps) {
  if (mean === null) return <span className="text-soft">unknown</span>
  return (
    <>
      {format(mean)}
      {known < runs && (
        <span className="block text-xs text-soft">
          of {number(known)} of {counted(runs, 'run')}
        </span>
      )}
    </>
  )
}
