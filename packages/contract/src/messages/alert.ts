import Type, { type Static } from 'typebox'
import { id, nullableText, nullableTime, time, uuid, CreationHeaders, damaged } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { ALERT_KINDS, ALERT_STATUSES } from '../engine/words.ts'
import type { OperatorRoute } from '../web/route.ts'
import { EnvironmentParams } from '../tenants/workspace.ts'

export type AlertKind = (typeof ALERT_KINDS)[number]
export type AlertStatus = (typeof ALERT_STATUSES)[number]

const rule = {
  name: id(LIMITS.nameChars, 'Name of the alert, in messages too'),
  kind: Type.Enum([...ALERT_KINDS], {
    $id: 'AlertKind',
    description:
      'error_rate: percent of ended runs that failed. cost: cost and estimated cost. no_runs: no run started in the window. ' +
      'approval_waiting: minutes that the longest waiting request waits. stalled_runs: runs without an event for 15 minutes, and those that were closed because of it. ' +
      'incomplete_runs: runs with events that did not arrive. ' +
      'share_failures: percent of the ended runs that failed with the version of a prompt that a share of the sessions gets; when it fires, it ends the share. ' +
      'budget: cost and estimated cost of the month or day',
  }),
  threshold: Type.Number({
    minimum: 0,
    maximum: 1e9,
    description:
      'Fires above this: percent, US dollars, minutes or runs. With budget, the amount in US dollars. With no_runs, not used',
  }),
}
const agentId = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  format: 'uuid',
  description: 'Only this agent, by its internal id. With approval_waiting, requests that name its external id',
})
const windowMinutes = Type.Integer({
  minimum: 5,
  maximum: LIMITS.alertWindowMinutes,
  description: 'How far back it looks',
})
const holdMinutes = Type.Integer({
  minimum: 0,
  maximum: 1_440,
  description:
    'How long the condition must hold before it fires, and must be over before it is resolved. Default 5, of share_failures 0',
})
const leastRuns = Type.Integer({
  minimum: 1,
  maximum: 1_000_000,
  description:
    'For error_rate, cost and share_failures: with fewer ended runs there is nothing to measure, because one failed run of one says little. ' +
    'Of a new error_rate or share_failures 5 if omitted, else 1',
})
const against = Type.Unsafe<'last_week' | null>({
  type: ['string', 'null'],
  enum: ['last_week', null],
  description:
    'For error_rate and cost. last_week: value and threshold are percent of the same hours a week before, so 200 is twice as much; ' +
    'whole hours that are over are compared, and both need leastRuns. A share of failures must also differ beyond chance (p at most 0.05). null: value and threshold are as the kind says',
})
const period = Type.Enum(['month', 'day'], { description: 'Period of a budget, in UTC' })

const settings = { agentId, windowMinutes, holdMinutes, leastRuns, against, period }

export const Alert = Type.Object(
  {
    id: uuid('Alert id'),
    environmentId: uuid('Its environment'),
    ...rule,
    ...settings,
    status: Type.Enum([...ALERT_STATUSES], { $id: 'AlertStatus' }),
    value: Type.Unsafe<number | null>({
      type: ['number', 'null'],
      description: 'The latest value; null: not checked, or nothing to measure',
    }),
    unpricedCalls: Type.Integer({
      minimum: 0,
      description:
        'For money: calls that the value leaves out, because they have neither a cost nor a price. Above 0, the value is at least what it says',
    }),
    comparison: nullableText(
      'For error_rate against last_week: which of both fails more often, or that the numbers show no difference. Without a difference it does not fire. ' +
        'For share_failures: the version of the share beside the version in force',
    ),
    percentTold: Type.Integer({
      minimum: 0,
      description: 'For a budget: the highest percentage reported in this period',
    }),
    since: time('Since when it has this status'),
    checkedAt: nullableTime('When it was last checked'),
    createdAt: time('When it was created'),
    damaged: damaged('The stored rule does not match its checksum: it is left out, and nothing is checked'),
  },
  { $id: 'Alert', description: 'A rule that watches an environment and notifies its webhooks' },
)
export type Alert = Static<typeof Alert>

export const NewAlert = Type.Object(
  {
    ...rule,
    agentId: Type.Optional(agentId),
    windowMinutes: Type.Optional(windowMinutes),
    holdMinutes: Type.Optional(holdMinutes),
    leastRuns: Type.Optional(leastRuns),
    against: Type.Optional(against),
    period: Type.Optional(period),
  },
  {
    $id: 'NewAlert',
    examples: [{ name: 'Many runs fail', kind: 'error_rate', threshold: 20, windowMinutes: 60, holdMinutes: 5 }],
  },
)
export type NewAlert = Static<typeof NewAlert>

export const AlertChange = Type.Partial(
  Type.Object({
    name: rule.name,
    threshold: rule.threshold,
    ...settings,
  }),
  {
    $id: 'AlertChange',
    minProperties: 1,
    additionalProperties: false,
    description: 'The fields to change. The kind cannot change',
    examples: [{ threshold: 25, holdMinutes: 10 }],
  },
)
export type AlertChange = Static<typeof AlertChange>

const AlertTest = Type.Object(
  { webhooks: Type.Integer({ minimum: 0, description: 'Webhooks that the message is sent to' }) },
  { $id: 'AlertTest' },
)
type AlertTest = Static<typeof AlertTest>

const AlertList = Type.Object({ items: Type.Array(Alert) }, { $id: 'AlertList' })
const AlertParams = Type.Object({ environmentId: uuid('Environment id'), alertId: uuid('Alert id') })

const common = { tag: 'Alerts', scopes: [] } as const
const change = { ...common, method: 'POST', access: 'admin' } as const
const act = { ...change, params: AlertParams, status: 200 } as const
const ALERTS = '/environments/{environmentId}/alerts'

/** Alerts and budgets. */
export const alertRoutes = {
  listAlerts: {
    ...common,
    method: 'GET',
    access: 'viewer',
    path: ALERTS,
    summary: 'List alerts and budgets, each with its status',
    params: EnvironmentParams,
    status: 200,
    reply: AlertList,
    errors: ['not_found'],
  },
  createAlert: {
    ...change,
    bodyBytes: LIMITS.operatorBodyBytes,
    path: ALERTS,
    audit: { action: 'alert.create', target: 'alert' },
    summary: 'Create an alert or a budget',
    params: EnvironmentParams,
    headers: CreationHeaders,
    body: NewAlert,
    status: 201,
    reply: Alert,
    errors: ['not_found', 'conflict'],
  },
  changeAlert: {
    ...act,
    bodyBytes: LIMITS.operatorBodyBytes,
    path: `${ALERTS}/{alertId}/change`,
    audit: { action: 'alert.change', target: 'alert' },
    summary: 'Change an alert or a budget',
    description: 'It is checked again at once. A budget with another amount, agent or period starts again.',
    body: AlertChange,
    reply: Alert,
    errors: ['not_found'],
  },
  testAlert: {
    ...act,
    path: `${ALERTS}/{alertId}/test`,
    audit: { action: 'alert.test', target: 'alert' },
    summary: 'Send the message of an alert to its webhooks now, marked as a test',
    reply: AlertTest,
    errors: ['not_found'],
  },
  removeAlert: {
    ...act,
    path: `${ALERTS}/{alertId}/remove`,
    audit: { action: 'alert.remove', target: 'alert' },
    summary: 'Remove an alert or a budget',
    reply: Alert,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
