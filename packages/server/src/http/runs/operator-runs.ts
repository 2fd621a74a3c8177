import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { RunFilter as RunFilterQuery } from '@tacho/contract/runs/operator-run.ts'
import { RUN_FILTERS, runFiltersBy } from '@tacho/contract/runs/run-filters.ts'
import { readScoreFilter } from '@tacho/contract/runs/score-filter.ts'
import type { RunView } from '@tacho/contract/runs/run-view.ts'
import type { StalledRule } from '@tacho/contract/runs/stalled-rule.ts'
import type { RunActivity } from '@tacho/contract/engine/words.ts'
import type { Agent } from '@tacho/contract/runs/agent.ts'
import { toOperatorRun, toRunProblem } from '../../domain/runs/run.ts'
import { estimatorOf } from '../../prices/price-table.ts'
import type { RunPlace, RunRow, RunsRead, RunCriteria, RunScan, RunViewRow, AgentRow } from '../../storage/runs/runs.ts'
import { readUncosted } from '../../storage/runs/usage.ts'
import { shownCosts } from './shown-cost.ts'
import { refuseField, optionalTimeOf, storedFilter } from '../web/field.ts'
import { readPage, NOTHING, listById, listPage } from '../web/paging.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'
import { isStorableText } from '../../domain/web/text.ts'
import { pick } from '../../domain/web/shown.ts'
import { isoTime } from '../../storage/engine/times.ts'
import { uuidv7 } from '../../storage/engine/uuid.ts'
import { foundOr, refuse } from '../web/reply-error.ts'
import type { ProblemEvent } from '../../storage/record/events.ts'
import { createTurnsOfWorkspaces } from '../web/turns.ts'
import { closeAfterMinutes, DEFAULT_STALLED_RULE, type StalledRuleRow } from '../../storage/data/retention.ts'
import type { Judge } from '../../storage/runs/scores.ts'
import type { Storage } from '../../storage/storage.ts'
import { judgeOf, readHidden } from './scores.ts'

const SCORE_CHARS_WITHOUT_TEXTS = 120
const MOST_BYTES_OF_CHAR = 3

export function operatorRunsRoutes(deps: OperatorDeps): void {
  const { serve, storage } = deps

  serve('listOperatorRuns', async ({ query, environment, workspace, actor, at, paging }) => {
    const { scoreOrder, sort = 'newest' } = query
    const chosen = runCriteriaOf(query, at, actor)
    if (chosen === null) return NOTHING
    if (scoreOrder !== undefined && chosen.score === undefined) return refuseField('scoreOrder', 'needs score')
    if (sort !== 'newest' && scoreOrder !== undefined) return refuseField('sort', 'cannot be given with scoreOrder')
    if (sort !== 'newest' && chosen.status === 'RUNNING') return refuseField('sort', 'lists only runs that ended')
    const rankedBy = sort === 'newest' ? undefined : { by: sort, runsLookedAt: LIMITS.runsLookedAt }
    const filter = { ...chosen, scoreOrder, rankedBy }
    const byShownCost = shownCosts(deps, environment.workspaceId)
    const { rows, nextCursor, scores } = await readPage(
      paging,
      async (page) => fittingWithScores(environment.id, await byShownCost.listRuns(environment.id, filter, page)),
      ({ startedAt, id, rank }: RunRow): RunPlace => ({ startedAt, id, ...(rank !== undefined && { rank }) }),
    )
    const calls = rows.flatMap(({ uncosted }) => readUncosted(uncosted))
    const estimator = await estimatorOf(deps, environment.workspaceId, calls)
    const activities = await activitiesOf(storage, environment.id, rows, at)
    const judged = rows.filter(({ id }) => scores.has(id)).map(({ id }) => id)
    const hidden = await readHidden(storage, { environment, workspace, actor, query }, judged)
    const items = rows.map((row) =>
      toOperatorRun(row, estimator, scores.get(row.id), activities.get(row.id), hidden.get(row.id)),
    )
    return { items, nextCursor }
  })

  serve('readOperatorRun', async ({ environment, workspace, actor, query, run, at }) => {
    const activities = await activitiesOf(storage, environment.id, [run], at)
    const estimator = await estimatorOf(deps, environment.workspaceId, readUncosted(run.uncosted))
    const scores = await storage.readRunScores(environment.id, [run.id])
    const hidden = await readHidden(storage, { environment, workspace, actor, query }, [run.id])
    return toOperatorRun(run, estimator, scores.get(run.id), activities.get(run.id), hidden.get(run.id))
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

/** Null: no stored row can contain one of the texts. */
export function runCriteriaOf(query: RunFilterQuery, now: number, by: Judge): RunCriteria | null {
  const filter = storedFilter(RUN_FILTERS, query)
  if (filter === null) return null
  const { activity, status = activity && 'RUNNING', hasApprovals, unjudged } = filter
  const score = filter.score === undefined ? undefined : readScoreFilter(filter.score)
  if (score === null) throw refuseField('score', 'must be a name, or a name and a comparison such as helpful<0.5')
  return {
    ...pick(filter, ...runFiltersBy('index'), 'agent', 'q', 'unscored', 'share'),
    status,
    stalledAt: activity && now,
    approvalsLookedAt: hasApprovals && LIMITS.searchedApprovals,
    scan: scanOf(query),
    score,
    unjudged: unjudged === undefined ? undefined : { name: unjudged, by: judgeOf(by) },
  }
}

const SCANNED: ReadonlySet<string> = new Set([...runFiltersBy('scan'), ...runFiltersBy('trait')])

function scanOf(query: RunFilterQuery): RunScan | undefined {
  const scanned = Object.entries(query).filter(([name, value]) => SCANNED.has(name) && value !== undefined)
  return scanned.length === 0 ? undefined : { ...Object.fromEntries(scanned), runsLookedAt: LIMITS.runsLookedAt }
}

/**
 * Saved views of an environment. Everyone who can read the environment sees them. A viewer cannot save any, because
 * viewers change nothing.
 */

const NO_VIEW = refuse('not_found', 'The view does not exist')
const NAME_TAKEN = refuse('conflict', 'The environment already has a view with this name')
const TOO_MANY = refuse('conflict', `The environment has reached its limit of ${LIMITS.runViews} views`)

export function runViewsRoutes({ serve, storage }: OperatorDeps): void {
  serve('listRunViews', ({ environment: { id }, paging }) =>
    listById(paging, (page) => storage.listRunViews(id, page), toRunView),
  )

  serve('createRunView', async ({ body, environment, at, audit }) => {
    const { name, query, lastHours = null, columns = [] } = body
    checkTimes(query)
    const id = uuidv7(at)
    const row = { id, environmentId: environment.id, name, query, lastHours, columns, createdAt: at }
    const outcome = await storage.createRunView(row, audit(id, { name }))
    if (outcome === 'too_many') return TOO_MANY
    return outcome === 'name_taken' ? NAME_TAKEN : toRunView(row)
  })

  serve('changeRunView', async ({ params: { runViewId: id }, body, environment, audit }) => {
    const { name, query, lastHours, columns } = body
    if (query !== undefined) checkTimes(query)
    const change = { name, query, lastHours, columns }
    const row = foundOr(await storage.changeRunView(environment.id, id, change, audit(id, change)), NO_VIEW)
    return row === 'name_taken' ? NAME_TAKEN : toRunView(row)
  })

  serve('removeRunView', async ({ params: { runViewId: id }, environment, audit }) =>
    toRunView(foundOr(await storage.removeRunView(environment.id, id, audit(id)), NO_VIEW)),
  )
}

function checkTimes({ from, to }: RunFilterQuery): void {
  optionalTimeOf('query/from', from)
  optionalTimeOf('query/to', to)
}

function toRunView({ createdAt, ...view }: RunViewRow): RunView {
  return { ...view, createdAt: isoTime(createdAt) }
}

export function problemsRoutes({ serve, storage }: OperatorDeps): void {
  // Pages of problems take turns, because each problem of an idle run may be in another compressed block.
  const takeTurn = createTurnsOfWorkspaces(LIMITS.problemsAtOnce, 'pages of problems')

  serve('listRunProblems', ({ reply, environment, run, paging }) =>
    listPage(
      paging,
      (page) => {
        const bounded = { pageBytes: LIMITS.problemsPageBytes, ...page }
        return takeTurn(reply, () => storage.listProblems(environment.id, run.id, bounded))
      },
      toRunProblem,
      ({ time, seq }: ProblemEvent) => ({ time, seq }),
    ),
  )
}

export function stalledRuleRoutes({ serve, storage, work }: OperatorDeps): void {
  serve('readStalledRule', async ({ environment }) => {
    return toRule(await storage.readStalledRule(environment.id))
  })

  serve('changeStalledRule', async ({ body, environment: { id }, at, audit }) => {
    const before = (await storage.readStalledRule(id)) ?? DEFAULT_STALLED_RULE
    const { idleMinutes = before.idleMinutes, closeAs = before.closeAs } = body
    const rule = { idleMinutes, closeAs }
    await storage.changeStalledRule(id, rule, at, audit(id, { from: before, to: rule }))
    work.wake('close_stalled')
    return toRule(rule)
  })
}

function toRule(row: StalledRuleRow | null): StalledRule {
  const rule = row ?? DEFAULT_STALLED_RULE
  return { ...rule, closeAfterMinutes: closeAfterMinutes(row), source: row === null ? 'default' : 'environment' }
}

async function activitiesOf(
  storage: Pick<Storage, 'readActivityRule'>,
  environmentId: string,
  rows: readonly RunRow[],
  now: number,
): Promise<ReadonlyMap<string, RunActivity>> {
  const running = rows.filter(({ status }) => status === 'RUNNING')
  if (running.length === 0) return new Map()
  const runIds = running.map(({ runId }) => runId)
  const { stalledBefore, waiting } = await storage.readActivityRule(environmentId, runIds, now)
  return new Map(
    running.map(({ id, runId, lastEventAt }): [string, RunActivity] => {
      if (waiting.includes(runId)) return [id, 'WAITING_FOR_APPROVAL']
      return [id, lastEventAt < stalledBefore ? 'STALLED' : 'ACTIVE']
    }),
  )
}

export function agentsRoutes({ serve, storage }: OperatorDeps): void {
  serve('listAgents', ({ query: { archived, q }, environment: { id }, paging }) => {
    if (q !== undefined && !isStorableText(q)) return NOTHING
    const filter = { withArchived: archived === 'true', search: q }
    return listById(paging, (page) => storage.listAgents(id, page, filter), toAgent)
  })
}

export function toAgent({ id, externalId, reportedName, displayName, archivedAt, lastRunAt }: AgentRow): Agent {
  const times = { archivedAt: isoTime(archivedAt), lastRunAt: isoTime(lastRunAt) }
  return { id, agentId: externalId, name: displayName ?? reportedName, reportedName, ...times }
}
