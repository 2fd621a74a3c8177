import { randomBytes } from 'node:crypto'
import { LIMITS } from '@tacho/contract/limits.ts'
import type { Alert } from '@tacho/contract/operator/alert.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance } from 'fastify'
import { firstState } from '../../domain/alert.ts'
import { isoTime } from '../../domain/run.ts'
import type { AlertRow } from '../../storage/alerts.ts'
import { uuidv7 } from '../../storage/uuid.ts'
import type { Deps } from '../deps.ts'
import { refuse } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { environmentOf } from './access.ts'
import { auditOf } from './audit.ts'
import { nameRefusal, refuseField } from './field.ts'

const TOO_MANY = refuse('conflict', `The environment has reached its limit of ${LIMITS.alerts} alerts`)

export function alertsRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, now, work } = deps

  serveRoute(app, OPERATOR_ROUTES.listAlerts, deps, async ({ request }) => {
    return { items: (await storage.listAlerts(environmentOf(request).id)).map(toAlert) }
  })

  serveRoute(app, OPERATOR_ROUTES.createAlert, deps, async ({ body, request }) => {
    const { name, kind, threshold, agentId = null, windowMinutes = 60, holdMinutes = 5, period = 'month' } = body
    const refusal = nameRefusal(name)
    if (refusal) return refusal
    if (kind === 'approval_waiting' && agentId !== null)
      return refuseField('agentId', 'cannot be used with approval_waiting')
    if (kind === 'budget' && threshold === 0) return refuseField('threshold', 'must be above 0 for a budget')
    const createdAt = now()
    const id = uuidv7(createdAt, randomBytes)
    const rule = {
      name,
      kind,
      threshold,
      agentId: agentId && agentId.toLowerCase(),
      windowMinutes,
      holdMinutes,
      period,
    }
    const environmentId = environmentOf(request).id
    const row: AlertRow = { id, environmentId, rule, state: firstState(createdAt), checkedAt: null, createdAt }
    const audit = [auditOf(request, createdAt, 'alert.create', { kind: 'alert', id }, rule)]
    if ((await storage.createAlert(row, audit)) === 'too_many') return TOO_MANY
    work.wake('check_alert')
    return toAlert(row)
  })

  serveRoute(app, OPERATOR_ROUTES.removeAlert, deps, async ({ params, request }) => {
    const id = params.alertId.toLowerCase()
    const audit = [auditOf(request, now(), 'alert.remove', { kind: 'alert', id })]
    const row = await storage.removeAlert(environmentOf(request).id, id, audit)
    return row === null ? refuse('not_found', 'The alert does not exist') : toAlert(row)
  })
}

function toAlert({ id, environmentId, rule, state, checkedAt, createdAt }: AlertRow): Alert {
  const { status, value, percentTold, since } = state
  const times = { since: isoTime(since), checkedAt: checkedAt === null ? null : isoTime(checkedAt) }
  return { id, environmentId, ...rule, status, value, percentTold, ...times, createdAt: isoTime(createdAt) }
}
