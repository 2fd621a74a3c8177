import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/access.ts'
import { Alert, AlertChange, AlertList, AlertParams, AlertTest, NewAlert } from './alert.ts'
import { EnvironmentParams } from '../tenants/environment.ts'
import { CreationHeaders } from '../web/idempotency.ts'

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
