import { BODY_ERRORS } from '../body-errors.ts'
import { LIMITS } from '../limits.ts'
import type { OperatorRoute } from './access.ts'
import { Alert, AlertChange, AlertList, AlertParams, AlertTest, NewAlert } from './alert.ts'
import { EnvironmentParams } from './environment.ts'
import { CreationHeaders } from './idempotency.ts'

const common = { tag: 'Alerts', scopes: [] } as const
const change = { ...common, method: 'POST', access: 'admin' } as const
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
    summary: 'Create an alert or a budget',
    params: EnvironmentParams,
    headers: CreationHeaders,
    body: NewAlert,
    status: 201,
    reply: Alert,
    errors: ['not_found', 'conflict', ...BODY_ERRORS],
  },
  changeAlert: {
    ...change,
    bodyBytes: LIMITS.operatorBodyBytes,
    path: `${ALERTS}/{alertId}/change`,
    summary: 'Change an alert or a budget',
    description: 'It is checked again at once. A budget with another amount, agent or period starts again.',
    params: AlertParams,
    body: AlertChange,
    status: 200,
    reply: Alert,
    errors: ['not_found', ...BODY_ERRORS],
  },
  testAlert: {
    ...change,
    path: `${ALERTS}/{alertId}/test`,
    summary: 'Send the message of an alert to its webhooks now, marked as a test',
    params: AlertParams,
    status: 200,
    reply: AlertTest,
    errors: ['not_found'],
  },
  removeAlert: {
    ...change,
    path: `${ALERTS}/{alertId}/remove`,
    summary: 'Remove an alert or a budget',
    params: AlertParams,
    status: 200,
    reply: Alert,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
