import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/access.ts'
import { EnvironmentParams } from '../tenants/environment.ts'
import { OperatorRunParams } from './operator-run.ts'
import { NewScore, Score, ScoreNames, ScorePage, ScoreParams, ScoresQuery, ScoreSums, ScoreSumsQuery } from './score.ts'

const read = { method: 'GET', access: 'viewer', tag: 'Scores', scopes: [], status: 200 } as const
const change = { method: 'POST', access: 'approver', tag: 'Scores', scopes: [], status: 200, reply: Score } as const

const SCORES = '/environments/{environmentId}/runs/{runId}/scores'

/** Judgements on runs and steps. */
export const scoreRoutes = {
  listScores: {
    ...read,
    path: SCORES,
    summary: 'List the scores of a run and its steps',
    params: OperatorRunParams,
    query: ScoresQuery,
    reply: ScorePage,
    errors: ['not_found', 'invalid_cursor'],
  },
  giveScore: {
    ...change,
    path: `${SCORES}/give`,
    audit: { action: 'run.score', target: 'run' },
    summary: "Judge a run or a step; it replaces the caller's score of this name",
    params: OperatorRunParams,
    bodyBytes: LIMITS.operatorBodyBytes,
    body: NewScore,
    errors: ['not_found', 'conflict'],
  },
  withdrawScore: {
    ...change,
    path: `${SCORES}/{scoreId}/withdraw`,
    audit: { action: 'run.withdraw_score', target: 'run' },
    summary: "Withdraw a score that an operator or token gave: the own one, or as admin anyone's",
    params: ScoreParams,
    errors: ['not_found', 'conflict'],
  },
  listScoreNames: {
    ...read,
    path: '/environments/{environmentId}/score-names',
    summary: 'List the names of scores, for filters and columns',
    params: EnvironmentParams,
    reply: ScoreNames,
    errors: ['not_found'],
  },
  readScoreSums: {
    ...read,
    path: '/environments/{environmentId}/score-sums',
    summary: 'Sum up the scores of a time range, by agent or prompt version',
    params: EnvironmentParams,
    query: ScoreSumsQuery,
    reply: ScoreSums,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
