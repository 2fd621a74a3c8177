import type { Prompt, PromptResult, PromptVersion, PromptVersionRow as Row } from '@tacho/contract/policies/prompt.ts'
import type {
  PromptRow,
  PromptVersionInfo,
  PromptVersionRow,
  VersionResultRow,
  VersionRunGroup,
} from '../../storage/policies/policies.ts'
import type { Estimator } from '../runs/estimate.ts'
import { isoTime } from '../../storage/engine/times.ts'
import { hasUnknown } from '../../storage/runs/usage.ts'
import { toScoreSums } from '../runs/score.ts'
import { isoOf, pick } from '../web/shown.ts'
import { NANOS, toLatency, toUsage } from '../record/usage.ts'

export function toPrompt(row: PromptRow): Prompt {
  const { id: promptId, workspaceId, name, newest } = row
  return { promptId, workspaceId, name, ...isoOf(row, 'createdAt', 'archivedAt'), newest: toPromptVersionRow(newest) }
}

export function toPromptVersionRow(row: PromptVersionInfo): Row {
  return {
    versionId: row.id,
    version: String(row.number),
    ...pick(row, 'promptId', 'author', 'note', 'contentBytes', 'contentHash'),
    ...isoOf(row, 'createdAt', 'importedAt'),
    ...(row.damaged && { damaged: true as const }),
  }
}

export function toPromptVersion(row: PromptVersionRow): PromptVersion {
  return { ...toPromptVersionRow(row), content: row.content }
}

const NO_RUNS = { runs: 0, completed: 0, failed: 0, cancelled: 0, events: 0, errors: 0, blocked: 0, approvals: 0 }
const NO_USAGE = { promptTokens: 0, completionTokens: 0, totalTokens: 0, costNanos: 0 }

export function toPromptResult(
  { id, number, note }: PromptVersionInfo,
  result: VersionResultRow | null,
  estimator: Pick<Estimator, 'ofSums'>,
): PromptResult {
  const counts = result ?? NO_RUNS
  return {
    versionId: id,
    version: String(number),
    note,
    ...pick(counts, 'runs', 'completed', 'failed', 'cancelled', 'events', 'errors', 'blocked', 'approvals'),
    lengthP50Ms: result?.lengthP50 ?? null,
    lengthP95Ms: result?.lengthP95 ?? null,
    llmLatency: toLatency(result?.llm ?? null),
    toolLatency: toLatency(result?.tool ?? null),
    usage: toUsage(result ?? NO_USAGE),
    ...estimator.ofSums(result?.uncosted ?? []),
    ...meansOf(result?.groups ?? [], estimator),
    firstAt: result && isoTime(result.firstAt),
    lastAt: result && isoTime(result.lastAt),
    scores: toScoreSums(result?.scores ?? []),
  }
}

/** Averages only complete groups: runs with missing figures would make a version look cheaper than it is. */
function meansOf(groups: readonly VersionRunGroup[], estimator: Pick<Estimator, 'ofSums'>) {
  const [tokens, cost] = [
    { sum: 0, runs: 0 },
    { sum: 0, runs: 0 },
  ]
  for (const { runs, totalTokens, costNanos, uncosted } of groups) {
    if (totalTokens > 0 && !uncosted.some(({ context }) => hasUnknown(context))) {
      tokens.sum += totalTokens
      tokens.runs += runs
    }
    const { estimatedCost, unpricedCalls } = estimator.ofSums(uncosted)
    if (unpricedCalls > 0 || (costNanos === 0 && estimatedCost === null && totalTokens === 0)) continue
    cost.sum += costNanos / NANOS + (estimatedCost ?? 0)
    cost.runs += runs
  }
  const mean = ({ sum, runs }: typeof tokens) => ({ mean: runs === 0 ? null : sum / runs, runs })
  return { tokensPerRun: mean(tokens), costPerRun: mean(cost) }
}
