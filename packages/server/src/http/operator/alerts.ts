import { LIMITS } from '@tacho/contract/limits.ts'
import type { Alert, AlertChange, AlertKind } from '@tacho/contract/operator/alert.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { alertNews, firstState } from '../../domain/alert.ts'
import { isoTime, nullableIsoTime } from '../../domain/run.ts'
import type { AlertRow } from '../../storage/alerts.ts'
import { uuidv7 } from '../../storage/uuid.ts'
import type { Deps } from '../deps.ts'
import { refuse } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { environmentOf } from './access.ts'
import { auditOf } from './audit.ts'
import { refuseField, checkTexts } from '../field.ts'

const NO_ALERT = refuse('not_found', 'The alert does not exist')
const TOO_MANY = refuse('conflict', `The environment has reached its limit of ${LIMITS.alerts} alerts`)

export function alertsRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, now, work } = deps

  serveRoute(app, OPERATOR_ROUTES.listAlerts, deps, async ({ request }) => {
    return { items: (await storage.listAlerts(environmentOf(request).id)).map(toAlert) }
  })

  serveRoute(app, OPERATOR_ROUTES.createAlert, deps, async ({ body, request }) => {
    const { name, kind, threshold, agentId = null, windowMinutes = 60, holdMinutes = 5, period = 'month' } = body
    checkRule(kind, body)
    const createdAt = now()
    const id = uuidv7(createdAt)
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

  serveRoute(app, OPERATOR_ROUTES.changeAlert, deps, async ({ params, body, request }) => {
    const { id, environmentId, found } = await find(request, params.alertId)
    if (found === null) return NO_ALERT
    checkRule(found.rule.kind, body)
    const at = now()
    const change = body.agentId ? { ...body, agentId: body.agentId.toLowerCase() } : body
    const audit = [auditOf(request, at, 'alert.change', { kind: 'alert', id }, change)]
    const row = await storage.changeAlert({ environmentId, id, at }, change, firstState(at), audit)
    if (row === null) return NO_ALERT
    work.wake('check_alert')
    return toAlert(row)
  })

  serveRoute(app, OPERATOR_ROUTES.testAlert, deps, async ({ params, request }) => {
    const { id, environmentId, found } = await find(request, params.alertId)
    if (found === null) return NO_ALERT
    const at = now()
    const news = alertNews(found, found.state)
    const type = found.rule.kind === 'budget' ? 'budget.reached' : 'alert.firing'
    const data = { ...news, title: `Test: ${news.title}`, isTest: true }
    const audit = [auditOf(request, at, 'alert.test', { kind: 'alert', id })]
    const webhooks = await storage.testAlert({ environmentId, id, at }, { type, data }, audit)
    work.wake('deliver_webhook')
    return { webhooks }
  })

  async function find(request: FastifyRequest, alertId: string) {
    const [environmentId, id] = [environmentOf(request).id, alertId.toLowerCase()]
    return { id, environmentId, found: await storage.findAlert(environmentId, id) }
  }

  serveRoute(app, OPERATOR_ROUTES.removeAlert, deps, async ({ params, request }) => {
    const id = params.alertId.toLowerCase()
    const audit = [auditOf(request, now(), 'alert.remove', { kind: 'alert', id })]
    const row = await storage.removeAlert(environmentOf(request).id, id, audit)
    return row === null ? NO_ALERT : toAlert(row)
  })
}

function checkRule(kind: AlertKind, { name, threshold }: AlertChange): void {
  if (kind === 'budget' && threshold === 0) throw refuseField('threshold', 'must be above 0 for a budget')
  checkTexts({ name })
}

function toAlert({ id, environmentId, rule, state, checkedAt, createdAt }: AlertRow): Alert {
  const { status, value, percentTold, since } = state
  const times = { since: isoTime(since), checkedAt: nullableIsoTime(checkedAt) }
  return { id, environmentId, ...rule, status, value, percentTold, ...times, createdAt: isoTime(createdAt) }
}
