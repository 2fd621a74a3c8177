import { LIMITS } from '@tacho/contract/limits.ts'
import type { Alert, AlertChange, AlertKind } from '@tacho/contract/operator/alert.ts'
import { alertNews, firstState } from '../../domain/alert.ts'
import { isoTime } from '../../storage/iso-time.ts'
import type { AlertRow } from '../../storage/alerts.ts'
import { uuidv7 } from '../../storage/uuid.ts'
import { refuse } from '../reply-error.ts'
import { auditOf } from './audit.ts'
import { refuseField, checkTexts } from '../field.ts'
import type { OperatorDeps } from './serve.ts'

const NO_ALERT = refuse('not_found', 'The alert does not exist')
const TOO_MANY = refuse('conflict', `The environment has reached its limit of ${LIMITS.alerts} alerts`)

export function alertsRoutes({ serve, storage, now, work }: OperatorDeps): void {
  serve('listAlerts', async ({ environment }) => {
    return { items: (await storage.listAlerts(environment.id)).map(toAlert) }
  })

  serve('createAlert', async ({ body, request, environment: { id: environmentId } }) => {
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
    const row: AlertRow = { id, environmentId, rule, state: firstState(createdAt), checkedAt: null, createdAt }
    const audit = [auditOf(request, createdAt, 'alert.create', { kind: 'alert', id }, rule)]
    if ((await storage.createAlert(row, audit)) === 'too_many') return TOO_MANY
    work.wake('check_alert')
    return toAlert(row)
  })

  serve('changeAlert', async ({ params, body, request, environment: { id: environmentId } }) => {
    const { id, rule } = await find(environmentId, params.alertId)
    checkRule(rule.kind, body)
    const at = now()
    const change = body.agentId ? { ...body, agentId: body.agentId.toLowerCase() } : body
    const audit = [auditOf(request, at, 'alert.change', { kind: 'alert', id }, change)]
    const row = await storage.changeAlert({ environmentId, id, at }, change, firstState(at), audit)
    if (row === null) return NO_ALERT
    work.wake('check_alert')
    return toAlert(row)
  })

  serve('testAlert', async ({ params, request, environment: { id: environmentId } }) => {
    const alert = await find(environmentId, params.alertId)
    const { id } = alert
    const at = now()
    const news = alertNews(alert, alert.state)
    const type = alert.rule.kind === 'budget' ? 'budget.reached' : 'alert.firing'
    const data = { ...news, title: `Test: ${news.title}`, isTest: true }
    const audit = [auditOf(request, at, 'alert.test', { kind: 'alert', id })]
    const webhooks = await storage.testAlert({ environmentId, id, at }, { type, data }, audit)
    work.wake('deliver_webhook')
    return { webhooks }
  })

  async function find(environmentId: string, alertId: string): Promise<AlertRow> {
    const alert = await storage.findAlert(environmentId, alertId.toLowerCase())
    if (alert === null) throw NO_ALERT
    return alert
  }

  serve('removeAlert', async ({ params, request, environment }) => {
    const id = params.alertId.toLowerCase()
    const audit = [auditOf(request, now(), 'alert.remove', { kind: 'alert', id })]
    const row = await storage.removeAlert(environment.id, id, audit)
    return row === null ? NO_ALERT : toAlert(row)
  })
}

function checkRule(kind: AlertKind, { name, threshold }: AlertChange): void {
  if (kind === 'budget' && threshold === 0) throw refuseField('threshold', 'must be above 0 for a budget')
  checkTexts({ name })
}

function toAlert({ id, environmentId, rule, state, checkedAt, createdAt }: AlertRow): Alert {
  const { status, value, percentTold, since } = state
  const times = { since: isoTime(since), checkedAt: isoTime(checkedAt) }
  return { id, environmentId, ...rule, status, value, percentTold, ...times, createdAt: isoTime(createdAt) }
}
