import { hash } from 'node:crypto'
import { LIMITS } from '@tacho/contract/limits.ts'
import type { Erasure, ErasureSubject } from '@tacho/contract/operator/erasure.ts'
import { advanceErasure } from '../../domain/erasure.ts'
import { isStorableText, UNSTORABLE } from '../../domain/text.ts'
import type { ErasureRow, NewErasure } from '../../storage/erasures.ts'
import { uuidv7 } from '../../storage/uuid.ts'
import { refuse } from '../reply-error.ts'
import { auditOf } from './audit.ts'
import { refuseField, checkTexts } from '../field.ts'
import { listPage, byId } from '../paging.ts'
import { pick, isoOf } from '../../domain/shown.ts'
import type { OperatorDeps } from './serve.ts'

const NO_ERASURE = refuse('not_found', 'The erasure does not exist')
/** After this time, the reply comes before the erasure is effective, and the background job continues. */
const ANSWER_MS = 10_000

export function erasuresRoutes({ serve, storage, cursors, now, work }: OperatorDeps): void {
  serve('createErasure', async ({ body, request, environment: { id: environmentId }, workspace, actor }) => {
    const { kind, field = null, reason = null } = body
    checkSubject(body)
    checkTexts({ reason })
    const createdAt = now()
    const id = uuidv7(createdAt)
    const subject = kind === 'run' ? ((await storage.findRun(environmentId, body.id))?.runId ?? body.id) : body.id
    const { kind: by, id: byId, name } = actor
    const erasure: NewErasure = {
      id,
      environmentId,
      kind,
      subject,
      field,
      subjectHash: hash('sha256', `${id} ${kind} ${subject}`),
      reason,
      requestedBy: { kind: by, id: byId, name, workspaceId: workspace.id, requestId: request.id },
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

  serve('previewErasure', async ({ body, environment: { id: environmentId } }) => {
    checkSubject(body)
    const { kind, field = null } = body
    const subject = kind === 'run' ? ((await storage.findRun(environmentId, body.id))?.runId ?? body.id) : body.id
    return storage.previewErasure(environmentId, { kind, subject, field }, LIMITS.erasurePreviewRuns)
  })

  serve('listErasures', ({ query, environment: { id } }) => {
    return listPage(cursors, query, {
      of: ['erasures', id],
      read: (page) => storage.listErasures(id, page),
      toItem: toErasure,
      placeOf: byId,
    })
  })

  serve('readErasure', async ({ params, environment }) => {
    const row = await storage.findErasure(environment.id, params.erasureId.toLowerCase())
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
