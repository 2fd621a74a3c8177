import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Alert, AlertChange, AlertKind } from '@tacho/contract/messages/alert.ts'
import { alertNews, firstState } from '../../domain/messages/alert.ts'
import { isoTime } from '../../storage/engine/times.ts'
import type { AlertRow } from '../../storage/messages/messages.ts'
import { uuidv7 } from '../../storage/engine/uuid.ts'
import { foundOr, refuse } from '../web/reply-error.ts'
import { refuseField } from '../web/field.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'

const NO_ALERT = refuse('not_found', 'The alert does not exist')
const TOO_MANY = refuse('conflict', `The environment has reached its limit of ${LIMITS.alerts} alerts`)

export function alertsRoutes({ serve, storage, work }: OperatorDeps): void {
  serve('listAlerts', async ({ environment }) => {
    return { items: (await storage.listAlerts(environment.id)).map(toAlert) }
  })

  serve('createAlert', async ({ body, environment: { id: environmentId }, at, audit }) => {
    const { name, kind, threshold, agentId = null, windowMinutes = 60, period = 'month', against = null } = body
    const { holdMinutes = kind === 'share_failures' ? 0 : 5, leastRuns = SHARES.has(kind) ? LEAST_RUNS : 1 } = body
    checkRule(kind, body)
    const id = uuidv7(at)
    const rule = {
      name,
      kind,
      threshold,
      agentId: agentId && agentId.toLowerCase(),
      windowMinutes,
      holdMinutes,
      leastRuns,
      against,
      period,
    }
    const row: AlertRow = { id, environmentId, rule, state: firstState(at), checkedAt: null, createdAt: at }
    if ((await storage.createAlert(row, audit(id, rule))) === 'too_many') return TOO_MANY
    work.wake('check_alert')
    return toAlert(row)
  })

  serve('changeAlert', async ({ params, body, environment: { id: environmentId }, at, audit }) => {
    const { id, rule } = await find(environmentId, params.alertId)
    checkRule(rule.kind, body)
    const change = body.agentId ? { ...body, agentId: body.agentId.toLowerCase() } : body
    const changed = await storage.changeAlert({ environmentId, id, at }, change, firstState(at), audit(id, change))
    const row = foundOr(changed, NO_ALERT)
    work.wake('check_alert')
    return toAlert(row)
  })

  serve('testAlert', async ({ params, environment: { id: environmentId }, at, audit }) => {
    const alert = await find(environmentId, params.alertId)
    const { id } = alert
    const news = alertNews(alert, alert.state)
    const type = alert.rule.kind === 'budget' ? 'budget.reached' : 'alert.firing'
    const data = { ...news, title: `Test: ${news.title}`, isTest: true }
    const webhooks = await storage.testAlert({ environmentId, id, at }, { type, data }, audit(id))
    work.wake('deliver_webhook')
    return { webhooks }
  })

  serve('removeAlert', async ({ params: { alertId: id }, environment, audit }) =>
    toAlert(foundOr(await storage.removeAlert(environment.id, id, audit(id)), NO_ALERT)),
  )

  async function find(environmentId: string, alertId: string): Promise<AlertRow> {
    return foundOr(await storage.findAlert(environmentId, alertId), NO_ALERT)
  }
}

/** Least number of runs of a share: one failed run of one must not count as a failure rate of 100 percent. */
const LEAST_RUNS = 5
const SHARES: ReadonlySet<AlertKind> = new Set(['error_rate', 'share_failures'])

function checkRule(kind: AlertKind, { threshold, against }: AlertChange): void {
  if (kind === 'budget' && threshold === 0) throw refuseField('threshold', 'must be above 0 for a budget')
  if (against && kind !== 'error_rate' && kind !== 'cost') {
    throw refuseField('against', 'is for alerts of the kinds error_rate and cost')
  }
}

function toAlert({ id, environmentId, rule, state, checkedAt, createdAt, damaged }: AlertRow): Alert {
  const { status, value, unpricedCalls = 0, comparison = null, percentTold, since } = state
  const times = { since: isoTime(since), checkedAt: isoTime(checkedAt) }
  return {
    id,
    environmentId,
    ...rule,
    leastRuns: rule.leastRuns ?? 1,
    against: rule.against ?? null,
    status,
    value,
    unpricedCalls,
    comparison,
    percentTold,
    ...times,
    createdAt: isoTime(createdAt),
    ...(damaged && { damaged }),
  }
}
