import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { toOperatorRun } from '../../domain/runs/run.ts'
import { estimatorOf } from '../../prices/estimator.ts'
import type { RunPlace, RunRow, RunsRead } from '../../storage/runs/runs.ts'
import { readUncosted } from '../../storage/runs/uncosted.ts'
import { refuseField } from '../web/field.ts'
import { activitiesOf } from './stalled-rule.ts'
import { isFindable, runFilterOf } from './run-filter.ts'
import { readPage, NOTHING } from '../web/paging.ts'
import type { OperatorDeps } from '../web/serve.ts'

const SCORE_CHARS_WITHOUT_TEXTS = 120
const MOST_BYTES_OF_CHAR = 3

export function operatorRunsRoutes(deps: OperatorDeps): void {
  const { serve, storage } = deps

  serve('listOperatorRuns', async ({ query, environment, at, walk }) => {
    const { scoreOrder, sort = 'newest' } = query
    const chosen = runFilterOf(query, at)
    if (scoreOrder !== undefined && chosen.score === undefined) return refuseField('scoreOrder', 'needs score')
    if (sort !== 'newest' && scoreOrder !== undefined) return refuseField('sort', 'cannot be given with scoreOrder')
    if (sort !== 'newest' && chosen.status === 'RUNNING') return refuseField('sort', 'lists only runs that ended')
    const rankedBy = sort === 'newest' ? undefined : { by: sort, runsLookedAt: LIMITS.runsLookedAt }
    const filter = { ...chosen, scoreOrder, rankedBy }
    if (!isFindable(filter)) return NOTHING
    const { rows, nextCursor, scores } = await readPage(
      walk,
      async (page) => fittingWithScores(environment.id, await storage.listRuns(environment.id, filter, page)),
      ({ startedAt, id, rank }: RunRow): RunPlace => ({ startedAt, id, ...(rank !== undefined && { rank }) }),
    )
    const calls = rows.flatMap(({ uncosted }) => readUncosted(uncosted))
    const estimator = await estimatorOf(deps, environment.workspaceId, calls)
    const activities = await activitiesOf(storage, environment.id, rows, at)
    const items = rows.map((row) => toOperatorRun(row, estimator, scores.get(row.id), activities.get(row.id)))
    return { items, nextCursor }
  })

  serve('readOperatorRun', async ({ environment, run, at }) => {
    const activities = await activitiesOf(storage, environment.id, [run], at)
    const estimator = await estimatorOf(deps, environment.workspaceId, readUncosted(run.uncosted))
    const scores = await storage.readRunScores(environment.id, [run.id])
    return toOperatorRun(run, estimator, scores.get(run.id), activities.get(run.id))
  })

  async function fittingWithScores(environmentId: string, page: RunsRead) {
    const scores = await storage.readRunScores(
      environmentId,
      page.rows.map(({ id }) => id),
    )
    let chars = 0
    const end = page.rows.findIndex(({ id }, index) => {
      for (const { name, category } of scores.get(id) ?? [])
        chars += SCORE_CHARS_WITHOUT_TEXTS + name.length + (category?.length ?? 0)
      return index > 0 && chars > LIMITS.listBytes / MOST_BYTES_OF_CHAR
    })
    return { ...(end < 0 ? page : { rows: page.rows.slice(0, end), more: true }), scores }
  }
}
