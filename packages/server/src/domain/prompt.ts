import type { Prompt, PromptResult, PromptVersion, PromptVersionRow as Row } from '@tacho/contract/operator/prompt.ts'
import type { EstimateFields } from '@tacho/contract/operator/estimate.ts'
import type { PromptRow, PromptVersionInfo, PromptVersionRow, VersionResultRow } from '../storage/prompts.ts'
import type { UncostedSum } from '../storage/uncosted.ts'
import { isoTime, nullableIsoTime } from './run.ts'
import { toScoreSums } from './score.ts'
import { pick } from './shown.ts'
import { toLatency, toUsage } from './usage.ts'

export function toPrompt({ id, workspaceId, name, createdAt, archivedAt, newest }: PromptRow): Prompt {
  const times = { createdAt: isoTime(createdAt), archivedAt: nullableIsoTime(archivedAt) }
  return { promptId: id, workspaceId, name, ...times, newest: toPromptVersionRow(newest) }
}

export function toPromptVersionRow(row: PromptVersionInfo): Row {
  const { id, promptId, number, contentHash, contentBytes, author, note } = row
  const times = { createdAt: isoTime(row.createdAt), importedAt: nullableIsoTime(row.importedAt) }
  const written = { version: String(number), author, note, ...times }
  return { promptId, versionId: id, ...written, contentBytes, contentHash }
}

export function toPromptVersion(row: PromptVersionRow): PromptVersion {
  return { ...toPromptVersionRow(row), content: row.content }
}

const NO_RUNS = { runs: 0, completed: 0, failed: 0, cancelled: 0, events: 0, errors: 0, blocked: 0, approvals: 0 }
const NO_USAGE = { promptTokens: 0, completionTokens: 0, totalTokens: 0, costNanos: 0 }

interface Estimator {
  ofSums(sums: readonly UncostedSum[]): EstimateFields
}

export function toPromptResult(
  { id, number, note }: PromptVersionInfo,
  result: VersionResultRow | null,
  estimator: Estimator,
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
    firstAt: result && isoTime(result.firstAt),
    lastAt: result && isoTime(result.lastAt),
    scores: toScoreSums(result?.scores ?? []),
  }
}
