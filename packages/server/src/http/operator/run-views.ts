import { randomBytes } from 'node:crypto'
import { LIMITS } from '@tacho/contract/limits.ts'
import type { RunFilter } from '@tacho/contract/operator/run.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { RunView } from '@tacho/contract/operator/run-view.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isoTime } from '../../domain/run.ts'
import type { AuditEntry } from '../../storage/audit.ts'
import type { PageById } from '../../storage/page.ts'
import type { RunViewRow } from '../../storage/run-views.ts'
import { uuidv7 } from '../../storage/uuid.ts'
import type { Deps } from '../deps.ts'
import { isRefusal, refuse, type Refusal } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { environmentOf } from './access.ts'
import { auditOf } from './audit.ts'
import { nameRefusal, textsRefusal, timeOf } from '../field.ts'
import { listById } from './list-by-id.ts'

const NO_VIEW = refuse('not_found', 'The view does not exist')
const NAME_TAKEN = refuse('conflict', 'The environment already has a view with this name')
const TOO_MANY = refuse('conflict', `The environment has reached its limit of ${LIMITS.runViews} views`)

export function runViewsRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors, now } = deps

  serveRoute(app, OPERATOR_ROUTES.listRunViews, deps, ({ query, request }) => {
    const { id } = environmentOf(request)
    return listById(cursors, ['run views', id], query, (page: PageById) => storage.listRunViews(id, page), toRunView)
  })

  serveRoute(app, OPERATOR_ROUTES.createRunView, deps, async ({ body, request }) => {
    const { name, query, lastHours = null, columns = [] } = body
    const refusal = nameRefusal(name) ?? queryRefusal(query)
    if (refusal) return refusal
    const createdAt = now()
    const id = uuidv7(createdAt, randomBytes)
    const row = { id, environmentId: environmentOf(request).id, name, query, lastHours, columns, createdAt }
    const outcome = await storage.createRunView(row, audited(request, 'create', id, { name }))
    if (outcome === 'too_many') return TOO_MANY
    return outcome === 'name_taken' ? NAME_TAKEN : toRunView(row)
  })

  serveRoute(app, OPERATOR_ROUTES.changeRunView, deps, async ({ params, body, request }) => {
    // Copy by name: a body can contain extra fields.
    const { name, query, lastHours, columns } = body
    const refusal =
      (name === undefined ? null : nameRefusal(name)) ?? (query === undefined ? null : queryRefusal(query))
    if (refusal) return refusal
    const id = params.runViewId.toLowerCase()
    const audit = audited(request, 'change', id, { name, query, lastHours, columns })
    const change = { name, query, lastHours, columns }
    const row = await storage.changeRunView(environmentOf(request).id, id, change, audit)
    if (row === null) return NO_VIEW
    return row === 'name_taken' ? NAME_TAKEN : toRunView(row)
  })

  serveRoute(app, OPERATOR_ROUTES.removeRunView, deps, async ({ params, request }) => {
    const id = params.runViewId.toLowerCase()
    const row = await storage.removeRunView(environmentOf(request).id, id, audited(request, 'remove', id))
    return row === null ? NO_VIEW : toRunView(row)
  })

  function audited(
    request: FastifyRequest,
    verb: string,
    id: string,
    detail: Record<string, unknown> = {},
  ): AuditEntry[] {
    return [auditOf(request, now(), `run_view.${verb}`, { kind: 'run_view', id }, detail)]
  }
}

/** Why the list of runs would refuse these filters, or a store could not keep them; null if neither. */
function queryRefusal(query: RunFilter): Refusal | null {
  const { minLengthMs: _, ...texts } = query
  const times = [query.from === undefined ? 0 : timeOf('query/from', query.from)]
  times.push(query.to === undefined ? 0 : timeOf('query/to', query.to))
  const named = Object.entries(texts).map(([name, text]) => [`query/${name}`, text])
  return times.find(isRefusal) ?? textsRefusal(Object.fromEntries(named) as Record<string, string>)
}

function toRunView({ createdAt, ...view }: RunViewRow): RunView {
  return { ...view, createdAt: isoTime(createdAt) }
}
