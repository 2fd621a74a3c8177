import { includesRole } from '@tacho/contract/engine/words.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { isoTime } from '../../storage/engine/times.ts'
import { agreements, toGroupedSums, toScore, valueOf } from '../../domain/runs/score.ts'
import { scoreId, type HiddenScoreRow, type Judge, type ScoreRow } from '../../storage/runs/scores.ts'
import type { EnvironmentRow, WorkspaceRow } from '../../storage/tenants/tenants.ts'
import type { Storage } from '../../storage/storage.ts'
import type { Actor } from '../people/access.ts'
import { refuseField, timeOf } from '../web/field.ts'
import { readPage } from '../web/paging.ts'
import { foundOr, refuse } from '../web/reply-error.ts'
import { NO_RUN } from './runs.ts'
import { createTurnsOfWorkspaces } from '../web/turns.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'

const NO_SCORE = refuse('not_found', 'The run does not have this score')
const TOO_MANY = refuse(
  'conflict',
  `The run has as many scores as are kept: ${LIMITS.scoresOfRun}, of ${LIMITS.scoreNamesOfRun} names`,
)
const SENT = refuse('conflict', 'A client sent this score as an event, which stays. The client can send another value')
const FOREIGN = refuse('conflict', "This is someone else's score. Withdrawing it requires the role admin")

export function scoresRoutes({ serve, storage }: OperatorDeps): void {
  const takeTurn = createTurnsOfWorkspaces(LIMITS.scoreSumsAtOnce, 'sums of scores')

  serve('listScores', async ({ environment, workspace, actor, query, run, paging }) => {
    const hidden = (await readHidden(storage, { environment, workspace, actor, query }, [run.id])).get(run.id) ?? []
    const isHidden = ({ authorKind, name, eventId }: ScoreRow) =>
      authorKind !== 'client' && hidden.some((row) => row.name === name && row.eventId === eventId)
    const { rows, nextCursor } = await readPage(
      paging,
      (page) => storage.listScores(environment.id, run.id, page),
      ({ id }: ScoreRow) => id,
    )
    const items = rows.filter((row) => !isHidden(row)).map(toScore)
    return { items, hidden: hidden.reduce((sum, { count }) => sum + count, 0), nextCursor }
  })

  serve('giveScore', async ({ run: { id, runId }, body, environment, actor, at, audit }) => {
    const { name, value, comment = null, eventId = null } = body
    const read = valueOf(value)
    if (read === null) return refuseField('value', 'must be a number, true, false or a text that can be stored')
    if (eventId === '') return refuseField('eventId', 'must not be empty')
    const of = { run: id, eventId, name, authorKind: actor.kind, authorId: actor.id }
    const scoreFields = { authorName: actor.name, ...read, comment: comment === '' ? null : comment, scoredAt: at }
    const score: ScoreRow = { id: scoreId(of), ...of, ...scoreFields, sentAs: null, importedAt: null }
    const outcome = await storage.giveScore(environment.id, score, audit(id, { runId, name, value }))
    if (outcome === 'no_run') return NO_RUN
    return outcome === 'too_many' ? TOO_MANY : toScore(score)
  })

  serve('withdrawScore', async ({ params: { scoreId: id }, run, environment, workspace, actor, audit }) => {
    const role = actor.roleIn(workspace.id)
    const by = role !== null && includesRole(role, 'admin') ? null : actor.id
    const entries = audit(run.id, { runId: run.runId, scoreId: id })
    const score = foundOr(await storage.withdrawScore(environment.id, run.id, id, by, entries), NO_SCORE)
    return score === 'sent' ? SENT : score === 'foreign' ? FOREIGN : toScore(score)
  })

  serve('listScoreNames', async ({ environment }) => {
    const names = await storage.listScoreNames(environment.id, LIMITS.scoreNames)
    return { items: names.map(({ name, kind, scoredAt }) => ({ name, kind, lastAt: isoTime(scoredAt) })) }
  })

  serve('readScoreSums', async ({ query, reply, environment: { id: environmentId, workspaceId } }) => {
    const window = timesOf(query)
    const by = query.by ?? null
    const most = { pairs: LIMITS.summedScores, rows: LIMITS.scoreSumRows }
    const { rows, isCut } = await takeTurn(reply, () =>
      storage.sumScores({ environmentId, workspaceId }, { ...window, by }, most),
    )
    return { items: toGroupedSums(rows), isCut }
  })

  serve('readScoreAgreement', async ({ query, reply, environment, workspace, actor }) => {
    const of = { name: query.name, ...timesOf(query) }
    const rows = await takeTurn(reply, () => storage.readJudged(environment.id, of))
    return {
      items: agreements(rows, mayJudge(actor, workspace) ? actor : null),
      isCut: rows.length >= LIMITS.summedScores,
    }
  })
}

interface Reader {
  environment: EnvironmentRow
  workspace: WorkspaceRow
  actor: Actor
  query: { blind?: 'true' | 'false' }
}

function mayJudge(actor: Actor, workspace: WorkspaceRow): boolean {
  const role = actor.roleIn(workspace.id)
  return role !== null && includesRole(role, 'approver')
}

/** Only data, without methods, so that the judge can be cloned to a thread of the store. */
export const judgeOf = ({ kind, id }: Judge): Judge => ({ kind, id })

/** By run: other judges' scores that a judge may not see before scoring the same. */
export async function readHidden(
  storage: Pick<Storage, 'readHiddenScores'>,
  { environment, workspace, actor, query }: Reader,
  runs: readonly string[],
): Promise<ReadonlyMap<string, HiddenScoreRow[]>> {
  if (query.blind === 'false' || !mayJudge(actor, workspace)) return new Map()
  return Map.groupBy(await storage.readHiddenScores(environment.id, runs, judgeOf(actor)), ({ run }) => run)
}

function timesOf(query: { from: string; to: string }): { from: number; to: number } {
  const [from, to] = [timeOf('from', query.from), timeOf('to', query.to)]
  if (to < from) throw refuseField('to', 'must not be before from')
  return { from, to }
}
