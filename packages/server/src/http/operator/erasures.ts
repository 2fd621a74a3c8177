import { hash, randomBytes } from 'node:crypto'
import { LIMITS } from '@tacho/contract/limits.ts'
import type { Erasure, ErasureSubject } from '@tacho/contract/operator/erasure.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance } from 'fastify'
import { advanceErasure } from '../../domain/erasure.ts'
import { isoTime } from '../../domain/run.ts'
import { isStorableText, UNSTORABLE } from '../../domain/text.ts'
import type { ErasureRow, NewErasure } from '../../storage/erasures.ts'
import type { PageById } from '../../storage/page.ts'
import { uuidv7 } from '../../storage/uuid.ts'
import type { Deps } from '../deps.ts'
import { refuse, type Refusal } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { actorOf, environmentOf, workspaceOf } from './access.ts'
import { auditOf } from './audit.ts'
import { refuseField, textsRefusal } from '../field.ts'
import { listById } from './list-by-id.ts'

const NO_ERASURE = refuse('not_found', 'The erasure does not exist')
/** If an erasure takes longer, the reply comes before it is effective, and the background job continues. */
const ANSWER_MS = 10_000

export function erasuresRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors, now, work } = deps

  serveRoute(app, OPERATOR_ROUTES.createErasure, deps, async ({ body, request }) => {
    const { kind, field = null, reason = null } = body
    const refusal = subjectRefusal(body) ?? textsRefusal({ reason })
    if (refusal) return refusal
    const { id: environmentId } = environmentOf(request)
    const createdAt = now()
    const id = uuidv7(createdAt, randomBytes)
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
      // Before appends wait for the erasure.
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
    const refusal = subjectRefusal(body)
    if (refusal) return refusal
    const { id: environmentId } = environmentOf(request)
    const { kind, field = null } = body
    const subject = kind === 'run' ? ((await storage.findRun(environmentId, body.id))?.runId ?? body.id) : body.id
    return storage.previewErasure(environmentId, { kind, subject, field }, LIMITS.erasurePreviewRuns)
  })

  serveRoute(app, OPERATOR_ROUTES.listErasures, deps, ({ query, request }) => {
    const { id } = environmentOf(request)
    return listById(cursors, ['erasures', id], query, (page: PageById) => storage.listErasures(id, page), toErasure)
  })

  serveRoute(app, OPERATOR_ROUTES.readErasure, deps, async ({ params, request }) => {
    const row = await storage.findErasure(environmentOf(request).id, params.erasureId.toLowerCase())
    return row === null ? NO_ERASURE : toErasure(row)
  })
}

function subjectRefusal({ kind, id, field = [] }: ErasureSubject): Refusal | null {
  if (!isStorableText(id)) return refuseField('id', UNSTORABLE)
  if (!field.every(isStorableText)) return refuseField('field', UNSTORABLE)
  return field.length > 0 && kind !== 'user' ? refuseField('field', 'is only for the kind user') : null
}

function toErasure(row: ErasureRow): Erasure {
  const { kind, id, name } = row.requestedBy
  const time = (at: number | null) => (at === null ? null : isoTime(at))
  return {
    id: row.id,
    environmentId: row.environmentId,
    kind: row.kind,
    subjectHash: row.subjectHash,
    field: row.field === null ? null : [...row.field],
    reason: row.reason,
    status: row.status,
    requestedBy: { kind, id, name },
    createdAt: isoTime(row.createdAt),
    effectiveAt: time(row.effectiveAt),
    finishedAt: time(row.finishedAt),
    searched: row.searched,
    toSearch: row.toSearch,
    runs: row.runs,
    events: row.events,
    eventsDeleted: row.eventsDeleted,
    approvals: row.approvals,
    issueRecords: row.issueRecords,
    issues: row.issues,
    checksum: row.checksum,
  }
}
