import { includesRole } from '@tacho/contract/operator/access.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isoTime } from '../../domain/run.ts'
import { toGroupedSums, toScore, valueOf } from '../../domain/score.ts'
import type { RunRow } from '../../storage/runs.ts'
import { scoreId, type ScoreRow } from '../../storage/scores.ts'
import type { Deps } from '../deps.ts'
import { holderOf } from '../holder.ts'
import { checkTexts, refuseField } from '../field.ts'
import { byId, listPage } from '../paging.ts'
import { refuse } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { createTurnsOfWorkspaces } from '../shared-turns.ts'
import { actorOf, environmentOf, workspaceOf } from './access.ts'
import { auditOf } from './audit.ts'
import { windowOf } from './window.ts'

const NO_RUN = refuse('not_found', 'The run does not exist')
const NO_SCORE = refuse('not_found', 'The run does not have this score')
const TOO_MANY = refuse(
  'conflict',
  `The run has as many scores as are kept: ${LIMITS.scoresOfRun}, of ${LIMITS.scoreNamesOfRun} names`,
)
const SENT = refuse('conflict', 'A client sent this score as an event, which stays. The client can send another value')
const FOREIGN = refuse('conflict', "This is someone else's score. Withdrawing it requires the role admin")

const TOO_MANY_SUMS = refuse('overloaded', 'Too many sums of scores of this workspace are waiting')

export function scoresRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors, now } = deps
  // Each reads as many scores as `summedScores`.
  const takeTurn = createTurnsOfWorkspaces(LIMITS.scoreSumsAtOnce, TOO_MANY_SUMS)

  serveRoute(app, OPERATOR_ROUTES.listScores, deps, async ({ params, query, request }) => {
    const environment = environmentOf(request)
    const run = await storage.findRun(environment.id, params.runId)
    if (run === null) return NO_RUN
    return listPage(cursors, query, {
      of: [environment.id, 'scores', run.id],
      read: (page) => storage.listScores(environment.id, run.id, page),
      toItem: toScore,
      placeOf: byId,
    })
  })

  serveRoute(app, OPERATOR_ROUTES.giveScore, deps, async ({ params, body, request }) => {
    const { name, value, comment = null, eventId = null } = body
    const read = valueOf(value)
    checkTexts({ name, comment, eventId })
    if (read === null) return refuseField('value', 'must be a number, true, false or a text that can be stored')
    if (eventId === '') return refuseField('eventId', 'must not be empty')
    const environmentId = environmentOf(request).id
    const run = await storage.findRun(environmentId, params.runId)
    if (run === null) return NO_RUN
    const actor = actorOf(request)
    const of = { run: run.id, eventId, name, authorKind: actor.kind, authorId: actor.id }
    const given = { authorName: actor.name, ...read, comment: comment === '' ? null : comment, scoredAt: now() }
    const score: ScoreRow = { id: scoreId(of), ...of, ...given, sentAs: null, importedAt: null }
    const outcome = await storage.giveScore(environmentId, score, audited(request, 'score', run, { name, value }))
    if (outcome === 'no_run') return NO_RUN
    return outcome === 'too_many' ? TOO_MANY : toScore(score)
  })

  serveRoute(app, OPERATOR_ROUTES.withdrawScore, deps, async ({ params, request }) => {
    const environmentId = environmentOf(request).id
    const run = await storage.findRun(environmentId, params.runId)
    if (run === null) return NO_RUN
    const actor = actorOf(request)
    const role = actor.roleIn(workspaceOf(request).id)
    const by = role !== null && includesRole(role, 'admin') ? null : actor.id
    const audit = audited(request, 'withdraw_score', run, { scoreId: params.scoreId })
    const score = await storage.withdrawScore(environmentId, run.id, params.scoreId, by, audit)
    if (score === null) return NO_SCORE
    return score === 'sent' ? SENT : score === 'foreign' ? FOREIGN : toScore(score)
  })

  serveRoute(app, OPERATOR_ROUTES.listScoreNames, deps, async ({ request }) => {
    const names = await storage.listScoreNames(environmentOf(request).id, LIMITS.scoreNames)
    return { items: names.map(({ name, kind, scoredAt }) => ({ name, kind, lastAt: isoTime(scoredAt) })) }
  })

  serveRoute(app, OPERATOR_ROUTES.readScoreSums, deps, async ({ query, request, reply }) => {
    const window = windowOf(query)
    const { id: environmentId, workspaceId } = environmentOf(request)
    const by = query.by ?? null
    const most = { pairs: LIMITS.summedScores, rows: LIMITS.scoreSumRows }
    const { rows, isCut } = await takeTurn({
      holder: holderOf(request),
      isOver: () => reply.raw.destroyed,
      run: () => storage.sumScores({ environmentId, workspaceId }, { ...window, by }, most),
    })
    return { items: toGroupedSums(rows), isCut }
  })

  /** Only the score keeps the comment. */
  function audited(request: FastifyRequest, verb: string, run: RunRow, detail: Record<string, unknown>) {
    return [auditOf(request, now(), `run.${verb}`, { kind: 'run', id: run.id }, { runId: run.runId, ...detail })]
  }
}
