/** What webhooks are told about a run that failed. */
import { whyEnded } from '@tacho/contract/failure.ts'
import type { RunRow } from '../storage/runs.ts'
import { nullableIsoTime, toRunFailure } from './run.ts'

/** Null: it did not fail, or an event has opened it again. */
export function failedRunNews(environmentId: string, run: RunRow): object | null {
  const { id, runId, sessionId, status, agentExternalId: agentId, ruleClosedAt } = run
  if (status !== 'FAILED') return null
  const agentName = run.agentDisplayName ?? run.agentName
  // What failed earlier is not why it went silent.
  const failure = ruleClosedAt === null ? toRunFailure(run) : null
  const why = whyEnded({ status, closedByRuleAt: nullableIsoTime(ruleClosedAt), failure })
  const about = { environmentId, id, runId, sessionId, agentId, agentName, runStatus: status }
  return { ...about, title: why ?? 'It says FAILED and no error', failure }
}
