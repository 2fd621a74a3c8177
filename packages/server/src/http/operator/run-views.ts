import { LIMITS } from '@tacho/contract/limits.ts'
import type { RunFilter } from '@tacho/contract/operator/run.ts'
import type { RunView } from '@tacho/contract/operator/run-view.ts'
import type { FastifyRequest } from 'fastify'
import { isoTime } from '../../storage/iso-time.ts'
import type { AuditEntry } from '../../storage/audit.ts'
import type { RunViewRow } from '../../storage/run-views.ts'
import { uuidv7 } from '../../storage/uuid.ts'
import { refuse } from '../reply-error.ts'
import { auditOf } from './audit.ts'
import { listPage, byId } from '../paging.ts'
import { checkTexts, optionalTimeOf } from '../field.ts'
import type { OperatorDeps } from './serve.ts'

const NO_VIEW = refuse('not_found', 'The view does not exist')
const NAME_TAKEN = refuse('conflict', 'The environment already has a view with this name')
const TOO_MANY = refuse('conflict', `The environment has reached its limit of ${LIMITS.runViews} views`)

export function runViewsRoutes({ serve, storage, cursors, now }: OperatorDeps): void {
  serve('listRunViews', ({ query, environment: { id } }) => {
    return listPage(cursors, query, {
      of: ['run views', id],
      read: (page) => storage.listRunViews(id, page),
      toItem: toRunView,
      placeOf: byId,
    })
  })

  serve('createRunView', async ({ body, request, environment }) => {
    const { name, query, lastHours = null, columns = [] } = body
    checkTexts({ name })
    checkQuery(query)
    const createdAt = now()
    const id = uuidv7(createdAt)
    const row = { id, environmentId: environment.id, name, query, lastHours, columns, createdAt }
    const outcome = await storage.createRunView(row, audited(request, 'create', id, { name }))
    if (outcome === 'too_many') return TOO_MANY
    return outcome === 'name_taken' ? NAME_TAKEN : toRunView(row)
  })

  serve('changeRunView', async ({ params, body, request, environment }) => {
    const { name, query, lastHours, columns } = body
    checkTexts({ name })
    if (query !== undefined) checkQuery(query)
    const id = params.runViewId.toLowerCase()
    const audit = audited(request, 'change', id, { name, query, lastHours, columns })
    const change = { name, query, lastHours, columns }
    const row = await storage.changeRunView(environment.id, id, change, audit)
    if (row === null) return NO_VIEW
    return row === 'name_taken' ? NAME_TAKEN : toRunView(row)
  })

  serve('removeRunView', async ({ params, request, environment }) => {
    const id = params.runViewId.toLowerCase()
    const row = await storage.removeRunView(environment.id, id, audited(request, 'remove', id))
    return row === null ? NO_VIEW : toRunView(row)
  })

  function audited(request: FastifyRequest, verb: string, id: string, detail: object = {}): AuditEntry[] {
    return [auditOf(request, now(), `run_view.${verb}`, { kind: 'run_view', id }, detail)]
  }
}

function checkQuery({ minLengthMs: _, share: __, ...texts }: RunFilter): void {
  optionalTimeOf('query/from', texts.from)
  optionalTimeOf('query/to', texts.to)
  checkTexts(Object.fromEntries(Object.entries(texts).map(([name, text]) => [`query/${name}`, text])))
}

function toRunView({ createdAt, ...view }: RunViewRow): RunView {
  return { ...view, createdAt: isoTime(createdAt) }
}
