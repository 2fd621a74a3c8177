import { hash } from 'node:crypto'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Erasure, ErasureSubject } from '@tacho/contract/data/erasure.ts'
import { advanceErasure } from '../../domain/data/erasure.ts'
import type { ErasureRow, NewErasure } from '../../storage/data/erasures.ts'
import { uuidv7 } from '../../storage/engine/uuid.ts'
import { foundOr, refuse } from '../web/reply-error.ts'
import { refuseField } from '../web/field.ts'
import { listById } from '../web/paging.ts'
import { pick, isoOf } from '../../domain/web/shown.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'

const NO_ERASURE = refuse('not_found', 'The erasure does not exist')
/** After this time, the reply comes before the erasure is effective, and the background job continues. */
const ANSWER_MS = 10_000

export function erasuresRoutes({ serve, storage, now, work }: OperatorDeps): void {
  serve('createErasure', async ({ body, request, environment: { id: environmentId }, workspace, actor, at, audit }) => {
    const { kind, field = null, reason = null } = body
    const subject = await subjectOf(environmentId, body)
    const id = uuidv7(at)
    const { kind: by, id: byId, name } = actor
    const erasure: NewErasure = {
      id,
      environmentId,
      kind,
      subject,
      field,
      subjectHash: hash('sha256', `${id} ${kind} ${subject}`),
      reason,
      requestedBy: { kind: by, id: byId, name, workspaceId: workspace.id, requestId: request.id, address: request.ip },
      createdAt: at,
      // Counted first, because appends must wait for the erasure itself.
      toSearch: await storage.countToSearch(environmentId, { kind, field }),
    }
    const detail = { kind, subjectHash: erasure.subjectHash, field, reason }
    const created = await storage.createErasure(erasure, audit(id, detail))
    const isOver = () => now() - at > ANSWER_MS
    const advanced = await advanceErasure(storage, { environmentId, id, now, isOver })
    work.wake('erase')
    return toErasure(advanced ?? created)
  })

  serve('previewErasure', async ({ body, environment: { id: environmentId } }) => {
    const { kind, field = null } = body
    const subject = await subjectOf(environmentId, body)
    return storage.previewErasure(environmentId, { kind, subject, field }, LIMITS.erasurePreviewRuns)
  })

  serve('listErasures', ({ environment: { id }, paging }) =>
    listById(paging, (page) => storage.listErasures(id, page), toErasure),
  )

  serve('readErasure', async ({ params, environment }) =>
    toErasure(foundOr(await storage.findErasure(environment.id, params.erasureId), NO_ERASURE)),
  )

  async function subjectOf(environmentId: string, { kind, id, field = [] }: ErasureSubject): Promise<string> {
    if (field.length > 0 && kind !== 'user') throw refuseField('field', 'is only for the kind user')
    return kind === 'run' ? ((await storage.findRun(environmentId, id))?.runId ?? id) : id
  }
}

function toErasure(row: ErasureRow): Erasure {
  return {
    ...pick(
      row,
      'id',
      'environmentId',
      'kind',
      'subjectHash',
      'reason',
      'status',
      'searched',
      'toSearch',
      'runs',
      'runningRuns',
    ),
    ...pick(row, 'events', 'eventsDeleted', 'approvals', 'issueRecords', 'issues', 'checksum'),
    ...isoOf(row, 'createdAt', 'effectiveAt', 'finishedAt'),
    field: row.field === null ? null : [...row.field],
    requestedBy: pick(row.requestedBy, 'kind', 'id', 'name'),
  }
}
