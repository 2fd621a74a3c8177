import { completenessText } from '@tacho/contract/record/completeness-text.ts'
import { whyEnded } from '@tacho/contract/issues/failure.ts'
import type { RunRow } from '../../storage/runs/runs.ts'
import { toCompleteness } from '../record/completeness.ts'
import { toRunFailure } from '../runs/run.ts'
import { isoTime } from '../../storage/engine/iso-time.ts'

export function gapsNews(environmentId: string, run: RunRow): object | null {
  const completeness = toCompleteness(run)
  const { state, unnumbered: _unnumbered, recorders: _recorders, ...counts } = completeness
  if (state !== 'GAPS') return null
  const title = completenessText(completeness, (iso) => `${iso.slice(0, 16).replace('T', ' ')} UTC`)
  return { ...newsOf(environmentId, run, title), ...counts }
}

export function failedRunNews(environmentId: string, run: RunRow): object | null {
  const { status, ruleClosedAt } = run
  if (status !== 'FAILED') return null
  // An earlier failure is not why it went silent.
  const failure = ruleClosedAt === null ? toRunFailure(run) : null
  const why = whyEnded({ status, closedByRuleAt: isoTime(ruleClosedAt), failure })
  return { ...newsOf(environmentId, run, why ?? 'It says FAILED and no error'), failure }
}

function newsOf(environmentId: string, run: RunRow, title: string) {
  const { id, runId, sessionId, agentExternalId: agentId, status: runStatus } = run
  return {
    environmentId,
    id,
    runId,
    sessionId,
    agentId,
    agentName: run.agentDisplayName ?? run.agentName,
    runStatus,
    title,
  }
}
