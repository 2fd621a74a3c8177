import { LIMITS } from '@tacho/contract/limits.ts'
import { toOperatorRun } from '../../domain/run.ts'
import { estimatorOf } from '../../prices/estimator.ts'
import type { RunPlace, RunRow, RunsRead } from '../../storage/runs.ts'
import { readUncosted } from '../../storage/uncosted.ts'
import { refuseField } from '../field.ts'
import { runOf } from '../runs.ts'
import { activitiesOf } from './stalled-rule.ts'
import { isFindable, runFilterOf } from './run-filter.ts'
import { readPage, NOTHING } from '../paging.ts'
import type { OperatorDeps } from './serve.ts'

/** A score in a reply, without its texts. */
const SCORE_CHARS = 120
const MOST_BYTES_OF_CHAR = 3

export function operatorRunsRoutes(deps: OperatorDeps): void {
  const { serve, storage, cursors, now } = deps

  serve('listOperatorRuns', async ({ query, environment }) => {
    const { scoreOrder, sort = 'newest' } = query
    const chosen = runFilterOf(query, now())
    if (scoreOrder !== undefined && chosen.score === undefined) return refuseField('scoreOrder', 'needs score')
    if (sort !== 'newest' && scoreOrder !== undefined) return refuseField('sort', 'cannot be given with scoreOrder')
    if (sort !== 'newest' && chosen.status === 'RUNNING') return refuseField('sort', 'lists only runs that ended')
    const rankedBy = sort === 'newest' ? undefined : { by: sort, runsLookedAt: LIMITS.runsLookedAt }
    const filter = { ...chosen, scoreOrder, rankedBy }
    if (!isFindable(filter)) return NOTHING
    const { rows, nextCursor, scores } = await readPage(cursors, query, {
      // The time at which a run counts as stalled moves on from page to page.
      of: [environment.id, 'operator runs', { ...filter, stalledAt: query.activity }],
      async read(place) {
        const { page, scores: found } = await scored(
          environment.id,
          await storage.listRuns(environment.id, filter, place),
        )
        return { ...page, scores: found }
      },
      placeOf: ({ startedAt, id, rank }: RunRow): RunPlace => ({ startedAt, id, ...(rank !== undefined && { rank }) }),
    })
    const calls = rows.flatMap(({ uncosted }) => readUncosted(uncosted))
    const estimator = await estimatorOf(deps, environment.workspaceId, calls)
    const activities = await activitiesOf(storage, environment.id, rows, now())
    const items = rows.map((row) => toOperatorRun(row, estimator, scores.get(row.id), activities.get(row.id)))
    return { items, nextCursor }
  })

  serve('readOperatorRun', async ({ params, environment }) => {
    const run = await runOf(storage, environment.id, params.runId)
    const activities = await activitiesOf(storage, environment.id, [run], now())
    const estimator = await estimatorOf(deps, environment.workspaceId, readUncosted(run.uncosted))
    const scores = await storage.readRunScores(environment.id, [run.id])
    return toOperatorRun(run, estimator, scores.get(run.id), activities.get(run.id))
  })

  /** As many runs as fit on a page with their scores. */
  async function scored(environmentId: string, page: RunsRead) {
    const scores = await storage.readRunScores(
      environmentId,
      page.rows.map(({ id }) => id),
    )
    let chars = 0
    const end = page.rows.findIndex(({ id }, index) => {
      for (const { name, category } of scores.get(id) ?? [])
        chars += SCORE_CHARS + name.length + (category?.length ?? 0)
      return index > 0 && chars > LIMITS.listBytes / MOST_BYTES_OF_CHAR
    })
    return { page: end < 0 ? page : { rows: page.rows.slice(0, end), more: true }, scores }
  }
}
