import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { RunFilter as RunFilterQuery } from '@tacho/contract/runs/operator-run.ts'
import { readScoreFilter } from '@tacho/contract/runs/score-filter.ts'
import { isStorableText } from '../../domain/web/text.ts'
import type { RunFilter, RunSift } from '../../storage/runs/runs.ts'
import { optionalTimeOf, refuseField } from '../web/field.ts'

export function runFilterOf(query: RunFilterQuery, now: number): RunFilter {
  const { activity, session: sessionId = query.sessionId, user: userId, agent, q, agentId } = query
  const from = optionalTimeOf('from', query.from)
  const to = optionalTimeOf('to', query.to)
  const approvalsLookedAt = query.hasApprovals === undefined ? undefined : LIMITS.searchedApprovals
  const { status = activity && 'RUNNING' } = query
  const stalledAt = activity && now
  const score = query.score === undefined ? undefined : readScoreFilter(query.score)
  if (score === null) throw refuseField('score', 'must be a name, or a name and a comparison such as helpful<0.5')
  const { unscored, share } = query
  const found = { agentId, agent, sessionId, userId, status, from, to, search: q, stalledAt }
  const hasGaps = query.completeness === 'GAPS' || undefined
  return { ...found, hasGaps, approvalsLookedAt, sift: siftOf(query), score, unscored, share }
}

export function isFindable({ sessionId, userId, agent, search, sift, score, unscored }: RunFilter): boolean {
  const scored = [score?.name, typeof score?.value === 'string' ? score.value : undefined, unscored]
  const texts = [sessionId, userId, agent, search, ...scored, ...Object.values(sift?.traits ?? {})]
  return texts.every((text) => text === undefined || text === null || isStorableText(text))
}

function siftOf(query: RunFilterQuery): RunSift | undefined {
  const { activity, minCost, minLengthMs, hasErrors, tool, model, policyId, promptVersionId, tag, metadata, loops } =
    query
  const { score, unscored, share } = query
  const given = [
    activity,
    minCost,
    minLengthMs,
    hasErrors,
    tool,
    model,
    policyId,
    promptVersionId,
    tag,
    metadata,
    loops,
    score,
    unscored,
    share,
  ]
  if (given.every((value) => value === undefined)) return undefined
  return {
    runsLookedAt: LIMITS.runsLookedAt,
    costNanosMin: Math.round(Number(minCost ?? 0) * NANOS),
    lengthMsMin: minLengthMs ?? 0,
    errorsMin: hasErrors === 'true' ? 1 : 0,
    traits: {
      ...(tool !== undefined && { tool }),
      ...(model !== undefined && { model }),
      ...(policyId !== undefined && { policy: policyId }),
      ...(promptVersionId !== undefined && { prompt: promptVersionId }),
      ...(tag !== undefined && { tag }),
      ...(metadata !== undefined && { meta: metadata }),
      ...(loops !== undefined && { loop: null }),
    },
  }
}

const NANOS = 1e9
