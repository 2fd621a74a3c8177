import { hash } from 'node:crypto'
import { LIMITS } from '@tacho/contract/limits.ts'
import type { Erasure, ErasureSubject } from '@tacho/contract/operator/erasure.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance } from 'fastify'
import { advanceErasure } from '../../domain/erasure.ts'
import { isStorableText, UNSTORABLE } from '../../domain/text.ts'
import type { ErasureRow, NewErasure } from '../../storage/erasures.ts'
import { uuidv7 } from '../../storage/uuid.ts'
import type { Deps } from '../deps.ts'
import { refuse } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { actorOf, environmentOf, workspaceOf } from './access.ts'
import { auditOf } from './audit.ts'
import { refuseField, checkTexts } from '../field.ts'
import { listPage, byId } from '../paging.ts'
import { pick, isoOf } from '../../domain/shown.ts'

const NO_ERASURE = refuse('not_found', 'The erasure does not exist')
/** After this time, the reply comes before the erasure is effective, and the background job continues. */
const ANSWER_MS = 10_000

export function erasuresRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors, now, work } = deps

  serveRoute(app, OPERATOR_ROUTES.createErasure, deps, async ({ body, request }) => {
    const { kind, field = null, reason = null } = body
    checkSubject(body)
    checkTexts({ reason })
    const { id: environmentId } = environmentOf(request)
    const createdAt = now()
    const id = uuidv7(createdAt)
    const subject = kind === 'run' ? ((await storage.findRun(environmentId, body.id))?.runId ?? body.id) : body.id
    const { kind: by, id: byId, name } = actorOf(request)
    const erasure: NewErasure = {
      id,
      environmentId,
      kind,
      subject,
      field,
      subjectHash: hash('sha256', `${id} ${kind} ${subject}`),
      reason,
      requestedBy: { kind: by, id: byId, name, workspaceId: workspaceOf(request).id, requestId: request.id },
      createdAt,
      // Counted before appends wait for the erasure.
      toSearch: await storage.countToSearch(environmentId, { kind, field }),
    }
    const detail = { kind, subjectHash: erasure.subjectHash, field, reason }
    const target = { kind: 'erasure', id }
    const created = await storage.createErasure(erasure, [
      auditOf(request, createdAt, 'erasure.create', target, detail),
    ])
    const isOver = () => now() - createdAt > ANSWER_MS
    const advanced = await advanceErasure(storage, { environmentId, id, now, isOver })
    work.wake('erase')
    return toErasure(advanced ?? created)
  })

  serveRoute(app, OPERATOR_ROUTES.previewErasure, deps, async ({ body, request }) => {
    checkSubject(body)
    const { id: environmentId } = environmentOf(request)
    const { kind, field = null } = body
    const subject = kind === 'run' ? ((await storage.findRun(environmentId, body.id))?.runId ?? body.id) : body.id
    return storage.previewErasure(environmentId, { kind, subject, field }, LIMITS.erasurePreviewRuns)
  })

  serveRoute(app, OPERATOR_ROUTES.listErasures, deps, ({ query, request }) => {
    const { id } = environmentOf(request)
    return listPage(cursors, query, {
      of: ['erasures', id],
      read: (page) => storage.listErasures(id, page),
      toItem: toErasure,
      placeOf: byId,
    })
  })

  serveRoute(app, OPERATOR_ROUTES.readErasure, deps, async ({ params, request }) => {
    const row = await storage.findErasure(environmentOf(request).id, params.erasureId.toLowerCase())
    return row === null ? NO_ERASURE : toErasure(row)
  })
}

function checkSubject({ kind, id, field = [] }: ErasureSubject): void {
  checkTexts({ id })
  if (!field.every(isStorableText)) throw refuseField('field', UNSTORABLE)
  if (field.length > 0 && kind !== 'user') throw refuseField('field', 'is only for the kind user')
}

function toErasure(row: ErasureRow): Erasure {
  return {
    ...pick(row, 'id', 'environmentId', 'kind', 'subjectHash', 'reason', 'status', 'searched', 'toSearch', 'runs'),
    ...pick(row, 'events', 'eventsDeleted', 'approvals', 'issueRecords', 'issues', 'checksum'),
    ...isoOf(row, 'createdAt', 'effectiveAt', 'finishedAt'),
    field: row.field === null ? null : [...row.field],
    requestedBy: pick(row.requestedBy, 'kind', 'id', 'name'),
  }
}
