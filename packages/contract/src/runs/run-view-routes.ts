import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/access.ts'
import { EnvironmentParams } from '../tenants/environment.ts'
import { CreationHeaders } from '../web/idempotency.ts'
import { NewRunView, RunView, RunViewChange, RunViewPage, RunViewParams } from './run-view.ts'
import { ListQuery } from '../tenants/workspace.ts'

const common = { tag: 'Runs', scopes: [] } as const
const change = { ...common, method: 'POST', access: 'approver', reply: RunView } as const
const body = { bodyBytes: LIMITS.operatorBodyBytes } as const

const VIEWS = '/environments/{environmentId}/run-views'
const VIEW = `${VIEWS}/{runViewId}` as const

/** Saved views of the list of runs. */
export const runViewRoutes = {
  listRunViews: {
    ...common,
    method: 'GET',
    access: 'viewer',
    path: VIEWS,
    summary: 'List the saved views of the list of runs',
    params: EnvironmentParams,
    query: ListQuery,
    status: 200,
    reply: RunViewPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  createRunView: {
    ...change,
    ...body,
    path: VIEWS,
    audit: { action: 'run_view.create', target: 'run_view' },
    summary: 'Save a view of the list of runs: filters and columns with a name',
    params: EnvironmentParams,
    headers: CreationHeaders,
    body: NewRunView,
    status: 201,
    errors: ['not_found', 'conflict'],
  },
  changeRunView: {
    ...change,
    ...body,
    path: `${VIEW}/change`,
    audit: { action: 'run_view.change', target: 'run_view' },
    summary: 'Rename a saved view, or change what it shows',
    params: RunViewParams,
    body: RunViewChange,
    status: 200,
    errors: ['not_found', 'conflict'],
  },
  removeRunView: {
    ...change,
    path: `${VIEW}/remove`,
    audit: { action: 'run_view.remove', target: 'run_view' },
    summary: 'Remove a saved view',
    params: RunViewParams,
    status: 200,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
