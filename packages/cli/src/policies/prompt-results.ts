/** `tacho prompts results`: compares the runs of each version. */
import type { PromptResult } from '@tacho/contract/policies/prompt.ts'
import { duration, percent } from '@tacho/contract/engine/format.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { meanText } from '@tacho/contract/runs/run-text.ts'
import { endedRuns, versionComparison } from '@tacho/contract/runs/statistics.ts'
import { findPlace } from '../tenants/tenants.ts'
import { connect, type EnvironmentOptions } from '../engine/options.ts'
import {
  counted,
  printable,
  printJson,
  printLine,
  printTable,
  spokenMoney,
  spokenNumber,
  type Column,
} from '../engine/output.ts'
import { findItem } from './versioned-item.ts'

const COLUMNS: Column[] = [
  { title: 'VERSION' },
  { title: 'RUNS', align: 'right' },
  { title: 'COMPLETED', align: 'right' },
  { title: 'FAILED', align: 'right' },
  { title: 'CANCELLED', align: 'right', isOptional: true },
  { title: 'ERRORS', align: 'right', isOptional: true },
  { title: 'BLOCKED', align: 'right' },
  { title: 'APPROVALS', align: 'right', isOptional: true },
  { title: 'P50 LENGTH', align: 'right', isOptional: true },
  { title: 'P95 LENGTH', align: 'right', isOptional: true },
  { title: 'P95 MODEL', align: 'right', isOptional: true },
  { title: 'P95 TOOL', align: 'right', isOptional: true },
  { title: 'TOKENS/RUN', align: 'right' },
  { title: 'COST/RUN', align: 'right' },
  { title: 'SCORES', isOptional: true },
  { title: 'LAST USED', as: 'time', isOptional: true },
]

export async function results(name: string, options: EnvironmentOptions): Promise<void> {
  const client = connect(options)
  const { workspace, environment } = await findPlace(client, options.environment, '--environment')
  const { id: promptId } = await findItem(client, workspace.id, 'prompt', name)
  const promptResults = await client.readPromptResults({ params: { environmentId: environment.id, promptId } })
  if (options.json) return printJson(promptResults)
  if (promptResults.items.every(({ runs }) => runs === 0)) {
    return printLine(
      `No recorded event names a version of ${printable(promptResults.name)}. Agents must send versionId as promptVersionId.`,
    )
  }
  printTable(COLUMNS, promptResults.items.map(rowOf))
  const comparison = versionComparison(promptResults.items)
  if (comparison !== null) printLine(`\n${comparison}`)
  if (promptResults.items.some(({ runs }) => runs === LIMITS.promptResultRuns)) {
    process.stderr.write(`Only the newest ${spokenNumber(LIMITS.promptResultRuns)} runs of each version are counted.\n`)
  }
}

const sumText = (sum: PromptResult['scores'][number]): string =>
  `${sum.name} ${sum.mean === null ? sum.categories.map(({ value, runs }) => `${value}×${runs}`).join(' ') : meanText(sum)}`

function rowOf(result: PromptResult): string[] {
  const { version, runs, completed, failed, cancelled, errors, blocked, approvals, estimatedCost } = result
  const length = (ms: number | null) => (ms === null ? '' : duration(ms))
  const perRun = ({ mean, runs: known }: PromptResult['costPerRun'], shown: (mean: number) => string) => {
    if (runs === 0) return ''
    if (mean === null) return 'unknown'
    return known === runs ? shown(mean) : `${shown(mean)} (${spokenNumber(known)} of ${counted(runs, 'run')})`
  }
  const money = (mean: number) => `${estimatedCost === null ? '' : '≈ '}${spokenMoney(Math.round(mean * 1e6) / 1e6)}`
  const ended = endedRuns(result)
  const share = (count: number) => (ended === 0 ? '' : `${count} (${percent(count, ended)})`)
  return [
    version,
    String(runs),
    share(completed),
    share(failed),
    share(cancelled),
    String(errors),
    String(blocked),
    String(approvals),
    length(result.lengthP50Ms),
    length(result.lengthP95Ms),
    length(result.llmLatency?.p95Ms ?? null),
    length(result.toolLatency?.p95Ms ?? null),
    perRun(result.tokensPerRun, (mean) => spokenNumber(Math.round(mean))),
    perRun(result.costPerRun, money),
    result.scores.map(sumText).join(', '),
    result.lastAt ?? '',
  ]
}
