import Type, { type Static } from 'typebox'
import { id, nextCursor, time, uuid, CreationHeaders } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { RUN_COLUMNS } from '../engine/words.ts'
import { RunFilter } from './operator-run.ts'
import type { OperatorRoute } from '../web/route.ts'
import { EnvironmentParams, ListQuery } from '../tenants/workspace.ts'

export type RunColumn = (typeof RUN_COLUMNS)[number]

const name = id(LIMITS.runViewNameChars, 'Unique in the environment; case-sensitive')
const lastHours = Type.Unsafe<number | null>({
  type: ['integer', 'null'],
  minimum: 1,
  maximum: LIMITS.runViewHours,
  description:
    'Runs started in so many hours before the view is opened; null: no such limit. `from` in `query` takes precedence',
})
const columns = Type.Array(Type.Enum([...RUN_COLUMNS], { $id: 'RunColumn' }), {
  maxItems: RUN_COLUMNS.length,
  uniqueItems: true,
  description: 'Columns to show; empty: those that the viewer last chose',
})

export const RunView = Type.Object(
  {
    id: uuid('View id'),
    environmentId: uuid('Its environment'),
    name,
    query: RunFilter,
    lastHours,
    columns,
    createdAt: time('When it was created'),
  },
  { $id: 'RunView', description: 'A saved view of the list of runs, shared by everyone who can read the environment' },
)
export type RunView = Static<typeof RunView>

export const NewRunView = Type.Object(
  { name, query: RunFilter, lastHours: Type.Optional(lastHours), columns: Type.Optional(columns) },
  {
    $id: 'NewRunView',
    examples: [
      {
        name: 'Failed refunds',
        query: { status: 'FAILED', tool: 'refund' },
        lastHours: 24,
        columns: ['status', 'run', 'started', 'cost'],
      },
    ],
  },
)
export type NewRunView = Static<typeof NewRunView>

/** Absent fields stay unchanged. */
const RunViewChange = Type.Object(
  {
    name: Type.Optional(name),
    query: Type.Optional(RunFilter),
    lastHours: Type.Optional(lastHours),
    columns: Type.Optional(columns),
  },
  { $id: 'RunViewChange', examples: [{ name: 'Failed refunds of today' }] },
)
type RunViewChange = Static<typeof RunViewChange>

export const RunViewPage = Type.Object({ items: Type.Array(RunView), nextCursor }, { $id: 'RunViewPage' })
export type RunViewPage = Static<typeof RunViewPage>

const RunViewParams = Type.Object({ environmentId: uuid('Environment id'), runViewId: uuid('View id') })

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
