import Type, { type Static } from 'typebox'
import { cursor, importedAt, nextCursor, nullableText, optionalText, pageLimit, time } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { scoreName, scoreValue } from '../record/payload.ts'
import { SCORE_KINDS } from '../engine/words.ts'
import { BlindQuery, OperatorRunParams } from './operator-run.ts'
import type { OperatorRoute } from '../web/route.ts'
import { EnvironmentParams } from '../tenants/workspace.ts'

const count = (description: string) => Type.Integer({ minimum: 0, description })

export const SCORE_AUTHORS = ['client', 'operator', 'token'] as const

const ScoreAuthor = Type.Object({
  kind: Type.Enum([...SCORE_AUTHORS], {
    description: 'client: a SCORE event; operator: a person; token: a script',
  }),
  id: Type.String({ description: 'Of a client: the author that it names; empty if it names none' }),
  name: Type.String(),
})

export const Score = Type.Object(
  {
    id: Type.String({ description: 'Of this name, step and author in the run' }),
    eventId: nullableText('Client event id of the step that it judges; null: the whole run'),
    name: scoreName,
    value: scoreValue,
    comment: nullableText('Why; null also where retention removed it'),
    author: ScoreAuthor,
    scoredAt: time('When it was given'),
    sentAs: nullableText('Client event id of the SCORE event; null: an operator gave it'),
    importedAt,
  },
  { $id: 'Score', description: 'What someone says of a run or of one of its steps' },
)
export type Score = Static<typeof Score>

export const ScorePage = Type.Object(
  {
    items: Type.Array(Score),
    hidden: count('Judgements of others in the run that the caller does not see before judging the same'),
    nextCursor,
  },
  { $id: 'ScorePage' },
)
export type ScorePage = Static<typeof ScorePage>

const ScoresQuery = Type.Object({
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
  ...BlindQuery.properties,
})

export const NewScore = Type.Object(
  {
    name: scoreName,
    value: scoreValue,
    comment: optionalText('Why', LIMITS.scoreCommentChars),
    eventId: optionalText('Client event id of the step; absent: the whole run', LIMITS.eventIdChars),
  },
  { $id: 'NewScore', examples: [{ name: 'quality', value: false, comment: 'It promised a refund' }] },
)
export type NewScore = Static<typeof NewScore>

const ScoreParams = Type.Object({
  ...OperatorRunParams.properties,
  scoreId: Type.String({ description: 'Id of the score' }),
})

const ScoreName = Type.Object(
  {
    name: scoreName,
    kind: Type.Enum([...SCORE_KINDS], { description: 'What its latest value is' }),
    lastAt: time('When it was last given'),
  },
  { $id: 'ScoreName', description: 'A name that scores of the environment have' },
)
type ScoreName = Static<typeof ScoreName>

export const ScoreNames = Type.Object(
  { items: Type.Array(ScoreName, { description: `By name, at most ${LIMITS.scoreNames}` }) },
  { $id: 'ScoreNames' },
)
export type ScoreNames = Static<typeof ScoreNames>

/** Sums over the runs with a score of one name. */
export const ScoreSum = Type.Object(
  {
    name: scoreName,
    runs: count('Runs with a score of this name'),
    mean: Type.Unsafe<number | null>({
      type: ['number', 'null'],
      description: 'Mean of the runs with numbers or yes and no, where yes is 1; null: all are categories',
    }),
    meanMargin: Type.Unsafe<number | null>({
      type: ['number', 'null'],
      minimum: 0,
      description: 'The true mean is likely (95 %) this much from it at most; null: fewer than two such runs',
    }),
    categories: Type.Array(Type.Object({ value: Type.String(), runs: count('Runs whose latest value it is') }), {
      description: `The most frequent first, at most ${LIMITS.scoreCategories}`,
    }),
  },
  { $id: 'ScoreSum', description: 'Scores of one name over several runs' },
)
export type ScoreSum = Static<typeof ScoreSum>

const scoreWindow = {
  from: time('Start of the window, by when scores were given'),
  to: time('End of the window, exclusive'),
}

const ScoreSumsQuery = Type.Object({
  ...scoreWindow,
  by: Type.Optional(
    Type.Enum(['agent', 'promptVersion', 'author'], {
      description:
        'Also by agent, by the prompt version that the run used, or by author: then each score of a run or step counts, and ' +
        'those are its runs',
    }),
  ),
})
export type ScoreSumsQuery = Static<typeof ScoreSumsQuery>

export const ScoreSums = Type.Object(
  {
    items: Type.Array(
      Type.Object({
        key: Type.String({
          description:
            'Internal agent id, id of the prompt version, or kind and id of the author (`operator 0192…`); empty without by',
        }),
        name: nullableText('Name of the agent or author, or prompt and version; null: the workspace does not have it'),
        scores: Type.Array(ScoreSum),
      }),
    ),
    isCut: Type.Boolean({
      description:
        `More than ${LIMITS.summedScores} were given: the latest are summed up. Or they have more than ${LIMITS.scoreSumRows} ` +
        'names and categories, in all groups: those of the names with most runs are listed',
    }),
  },
  { $id: 'ScoreSums' },
)
export type ScoreSums = Static<typeof ScoreSums>

const ScoreAgreementQuery = Type.Object({ name: scoreName, ...scoreWindow })

/** Agreement of two authors on the same runs and steps. */
export const ScoreAgreement = Type.Object(
  {
    items: Type.Array(
      Type.Object({
        one: ScoreAuthor,
        other: ScoreAuthor,
        both: count('Runs and steps that both judged'),
        same: count('Those with equal values'),
        kappa: Type.Unsafe<number | null>({
          type: ['number', 'null'],
          description:
            "Cohen's kappa, without weights: 1 is full agreement, 0 what chance would give. Null: both gave one and the same " +
            'value to all, so chance explains everything',
        }),
        kappaMargin: Type.Unsafe<number | null>({
          type: ['number', 'null'],
          minimum: 0,
          description: 'The true kappa is likely (95 %) this much from it at most; null: fewer than two',
        }),
        hidden: count('Differences that the caller does not see before judging the same'),
        differences: Type.Array(
          Type.Object({
            runId: Type.String({ description: 'External run id' }),
            eventId: nullableText('Client event id of the step; null: the whole run'),
            one: scoreValue,
            other: scoreValue,
          }),
          {
            description: `Of which they judge differently, the last judged first, at most ${LIMITS.agreementDifferences}`,
          },
        ),
      }),
      { description: `Pairs of the ${LIMITS.agreementAuthors} authors with most scores; those that share most first` },
    ),
    isCut: Type.Boolean({ description: `More than ${LIMITS.summedScores} scores were given: the latest are compared` }),
  },
  { $id: 'ScoreAgreement' },
)
export type ScoreAgreement = Static<typeof ScoreAgreement>

const read = { method: 'GET', access: 'viewer', tag: 'Scores', scopes: [], status: 200 } as const
const change = { method: 'POST', access: 'approver', tag: 'Scores', scopes: [], status: 200, reply: Score } as const

const SCORES = '/environments/{environmentId}/runs/{runId}/scores'

/** Scores of runs and steps. */
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
    summary: 'Sum up the scores of a time range, by agent, prompt version or author',
    params: EnvironmentParams,
    query: ScoreSumsQuery,
    reply: ScoreSums,
    errors: ['not_found'],
  },
  readScoreAgreement: {
    ...read,
    path: '/environments/{environmentId}/score-agreement',
    summary: 'Compare what pairs of authors judged of the same runs',
    params: EnvironmentParams,
    query: ScoreAgreementQuery,
    reply: ScoreAgreement,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
