import { LIMITS } from '@tacho/contract/limits.ts'
import type { RunFilter } from '@tacho/contract/operator/run.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { RunView } from '@tacho/contract/operator/run-view.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isoTime } from '../../domain/run.ts'
import type { AuditEntry } from '../../storage/audit.ts'
import type { RunViewRow } from '../../storage/run-views.ts'
import { uuidv7 } from '../../storage/uuid.ts'
import type { Deps } from '../deps.ts'
import { refuse } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { environmentOf } from './access.ts'
import { auditOf } from './audit.ts'
import { listPage, byId } from '../paging.ts'
import { checkTexts, optionalTimeOf } from '../field.ts'

const NO_VIEW = refuse('not_found', 'The view does not exist')
const NAME_TAKEN = refuse('conflict', 'The environment already has a view with this name')
const TOO_MANY = refuse('conflict', `The environment has reached its limit of ${LIMITS.runViews} views`)

export function runViewsRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors, now } = deps

  serveRoute(app, OPERATOR_ROUTES.listRunViews, deps, ({ query, request }) => {
    const { id } = environmentOf(request)
    return listPage(cursors, query, {
      of: ['run views', id],
      read: (page) => storage.listRunViews(id, page),
      toItem: toRunView,
      placeOf: byId,
    })
  })

  serveRoute(app, OPERATOR_ROUTES.createRunView, deps, async ({ body, request }) => {
    const { name, query, lastHours = null, columns = [] } = body
    checkTexts({ name })
    checkQuery(query)
    const createdAt = now()
    const id = uuidv7(createdAt)
    const row = { id, environmentId: environmentOf(request).id, name, query, lastHours, columns, createdAt }
    const outcome = await storage.createRunView(row, audited(request, 'create', id, { name }))
    if (outcome === 'too_many') return TOO_MANY
    return outcome === 'name_taken' ? NAME_TAKEN : toRunView(row)
  })

  serveRoute(app, OPERATOR_ROUTES.changeRunView, deps, async ({ params, body, request }) => {
    // By name: a body can contain extra fields.
    const { name, query, lastHours, columns } = body
    checkTexts({ name })
    if (query !== undefined) checkQuery(query)
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

/** Filters that the list of runs would refuse, or that no store could keep. */
function checkQuery({ minLengthMs: _, share: __, ...texts }: RunFilter): void {
  optionalTimeOf('query/from', texts.from)
  optionalTimeOf('query/to', texts.to)
  checkTexts(Object.fromEntries(Object.entries(texts).map(([name, text]) => [`query/${name}`, text])))
}

function toRunView({ createdAt, ...view }: RunViewRow): RunView {
  return { ...view, createdAt: isoTime(createdAt) }
}
