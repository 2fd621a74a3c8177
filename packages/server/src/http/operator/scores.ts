import { includesRole } from '@tacho/contract/operator/access.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import type { FastifyRequest } from 'fastify'
import { isoTime } from '../../storage/iso-time.ts'
import { toGroupedSums, toScore, valueOf } from '../../domain/score.ts'
import type { RunRow } from '../../storage/runs.ts'
import { scoreId, type ScoreRow } from '../../storage/scores.ts'
import { checkTexts, refuseField } from '../field.ts'
import { byId, listPage } from '../paging.ts'
import { refuse } from '../reply-error.ts'
import { NO_RUN, runOf } from '../runs.ts'
import { createTurnsOfWorkspaces } from '../shared-turns.ts'
import { auditOf } from './audit.ts'
import { windowOf } from './window.ts'
import type { OperatorDeps } from './serve.ts'

const NO_SCORE = refuse('not_found', 'The run does not have this score')
const TOO_MANY = refuse(
  'conflict',
  `The run has as many scores as are kept: ${LIMITS.scoresOfRun}, of ${LIMITS.scoreNamesOfRun} names`,
)
const SENT = refuse('conflict', 'A client sent this score as an event, which stays. The client can send another value')
const FOREIGN = refuse('conflict', "This is someone else's score. Withdrawing it requires the role admin")

export function scoresRoutes({ serve, storage, cursors, now }: OperatorDeps): void {
  const takeTurn = createTurnsOfWorkspaces(LIMITS.scoreSumsAtOnce, 'sums of scores')

  serve('listScores', async ({ params, query, environment }) => {
    const run = await runOf(storage, environment.id, params.runId)
    return listPage(cursors, query, {
      of: [environment.id, 'scores', run.id],
      read: (page) => storage.listScores(environment.id, run.id, page),
      toItem: toScore,
      placeOf: byId,
    })
  })

  serve('giveScore', async ({ params, body, request, environment: { id: environmentId }, actor }) => {
    const { name, value, comment = null, eventId = null } = body
    const read = valueOf(value)
    checkTexts({ name, comment, eventId })
    if (read === null) return refuseField('value', 'must be a number, true, false or a text that can be stored')
    if (eventId === '') return refuseField('eventId', 'must not be empty')
    const run = await runOf(storage, environmentId, params.runId)
    const of = { run: run.id, eventId, name, authorKind: actor.kind, authorId: actor.id }
    const given = { authorName: actor.name, ...read, comment: comment === '' ? null : comment, scoredAt: now() }
    const score: ScoreRow = { id: scoreId(of), ...of, ...given, sentAs: null, importedAt: null }
    const outcome = await storage.giveScore(environmentId, score, audited(request, 'score', run, { name, value }))
    if (outcome === 'no_run') return NO_RUN
    return outcome === 'too_many' ? TOO_MANY : toScore(score)
  })

  serve('withdrawScore', async ({ params, request, environment: { id: environmentId }, workspace, actor }) => {
    const run = await runOf(storage, environmentId, params.runId)
    const role = actor.roleIn(workspace.id)
    const by = role !== null && includesRole(role, 'admin') ? null : actor.id
    const audit = audited(request, 'withdraw_score', run, { scoreId: params.scoreId })
    const score = await storage.withdrawScore(environmentId, run.id, params.scoreId, by, audit)
    if (score === null) return NO_SCORE
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

  function audited(request: FastifyRequest, verb: string, run: RunRow, detail: Record<string, unknown>) {
    return [auditOf(request, now(), `run.${verb}`, { kind: 'run', id: run.id }, { runId: run.runId, ...detail })]
  }
}
