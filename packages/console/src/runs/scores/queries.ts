/** Scores of a run, names of scores, and calls that judge. */
import { allItems } from '@tacho/client/items.ts'
import type { NewScore, Score, ScoreSumsQuery } from '@tacho/contract/runs/score.ts'
import { queryOptions, useMutation } from '@tanstack/react-query'
import { api } from '../../web/api.ts'

export const scoresQuery = (environmentId: string, runId: string, blind: 'true' | 'false' = 'true') =>
  queryOptions({
    queryKey: ['scores', environmentId, runId, blind],
    queryFn: () => allItems(api.listScores, { params: { environmentId, runId }, query: { limit: 200, blind } }),
  })

export const scoreNamesQuery = (environmentId: string) =>
  queryOptions({
    queryKey: ['score names', environmentId],
    queryFn: async () => (await api.listScoreNames({ params: { environmentId } })).items,
    staleTime: 60_000,
  })

export const scoreSumsQuery = (environmentId: string, { from, to, by }: { from: string; to: string; by: ScoreGroup }) =>
  queryOptions({
    queryKey: ['score sums', environmentId, from, to, by],
    queryFn: () => api.readScoreSums({ params: { environmentId }, query: { from, to, by } }),
  })

export const judgesQuery = (environmentId: string, name: string, window: { from: string; to: string }) =>
  queryOptions({
    queryKey: ['judges', environmentId, name, window],
    queryFn: () => api.readScoreAgreement({ params: { environmentId }, query: { name, ...window } }),
  })

/** Judges a run, and undoes that. Pages with scores read again, but the queue keeps its position. */
export function useJudging(environmentId: string) {
  const give = useMutation({
    mutationFn: ({ runId, body }: { runId: string; body: NewScore }) =>
      api.giveScore({ params: { environmentId, runId }, body }),
  })
  const withdraw = useMutation({
    mutationFn: ({ runId, scoreId }: { runId: string; scoreId: string }) =>
      api.withdrawScore({ params: { environmentId, runId, scoreId } }),
  })
  return { give, withdraw }
}

export type ScoreGroup = NonNullable<ScoreSumsQuery['by']>

export const authorName = ({ name }: Score['author']): string => (name === '' ? 'a client' : name)

const NAME = 'tacho.score-name'
const FIRST_NAME = 'quality'

/** The name of the score that this browser gave last. */
export const lastName = (): string => localStorage.getItem(NAME) ?? FIRST_NAME
export const rememberName = (name: string): void => localStorage.setItem(NAME, name)
