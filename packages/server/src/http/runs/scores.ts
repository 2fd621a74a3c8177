import { includesRole } from '@tacho/contract/web/route.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { isoTime } from '../../storage/engine/times.ts'
import { toGroupedSums, toScore, valueOf } from '../../domain/runs/score.ts'
import { scoreId, type ScoreRow } from '../../storage/runs/scores.ts'
import { refuseField } from '../web/field.ts'
import { listById } from '../web/paging.ts'
import { foundOr, refuse } from '../web/reply-error.ts'
import { NO_RUN } from './runs.ts'
import { createTurnsOfWorkspaces } from '../web/turns.ts'
import { windowOf } from './usage.ts'
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

  serve('listScores', ({ environment, run, paging }) =>
    listById(paging, (page) => storage.listScores(environment.id, run.id, page), toScore),
  )

  serve('giveScore', async ({ run: { id, runId }, body, environment, actor, at, audit }) => {
    const { name, value, comment = null, eventId = null } = body
    const read = valueOf(value)
    if (read === null) return refuseField('value', 'must be a number, true, false or a text that can be stored')
    if (eventId === '') return refuseField('eventId', 'must not be empty')
    const of = { run: id, eventId, name, authorKind: actor.kind, authorId: actor.id }
    const given = { authorName: actor.name, ...read, comment: comment === '' ? null : comment, scoredAt: at }
    const score: ScoreRow = { id: scoreId(of), ...of, ...given, sentAs: null, importedAt: null }
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
    const window = windowOf(query)
    const by = query.by ?? null
    const most = { pairs: LIMITS.summedScores, rows: LIMITS.scoreSumRows }
    const { rows, isCut } = await takeTurn(reply, () =>
      storage.sumScores({ environmentId, workspaceId }, { ...window, by }, most),
    )
    return { items: toGroupedSums(rows), isCut }
  })
}
