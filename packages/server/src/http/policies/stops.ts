import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Stop, StopPage } from '@tacho/contract/policies/stop.ts'
import { pick } from '../../domain/web/shown.ts'
import { isoTime } from '../../storage/engine/times.ts'
import { uuidv7 } from '../../storage/engine/uuid.ts'
import { CONDITION_CHARS, stopCondition, type StopRow } from '../../storage/policies/policies.ts'
import { rejectStopped } from '../../domain/approvals/approval.ts'
import type { ApprovalReader } from '../approvals/approval-reader.ts'
import { refuseField } from '../web/field.ts'
import { readPage } from '../web/paging.ts'
import { isStorableText } from '../../domain/web/text.ts'
import { foundOr, refuse } from '../web/reply-error.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'

const NO_STOP = refuse('not_found', 'The environment has no such stop')
const TOO_MANY = refuse(
  'conflict',
  `An environment can have at most ${LIMITS.stops} stops in effect: resume some, or stop the environment`,
)

const TOO_MANY_NAMES = refuse(
  'conflict',
  'More agents have this name than one stop can name: stop each by its id, or stop the environment',
)

export function stopsRoutes({ serve, storage, configurations, now }: OperatorDeps, { feed }: ApprovalReader): void {
  serve('listStops', async ({ query: { state, runId }, environment, paging }) => {
    // An id that cannot be stored belongs to no run.
    if (runId !== undefined && !isStorableText(runId))
      return { clients: await clientsOf(environment.id), items: [], nextCursor: null }
    const filter = { inEffect: state !== 'all', run: runId }
    const { rows, nextCursor } = await readPage(
      paging,
      (page) => storage.listStops(environment.id, filter, page),
      ({ id }: StopRow) => ({ id }),
    )
    return { clients: await clientsOf(environment.id), items: rows.map(toStop), nextCursor }
  })

  serve(
    'stop',
    async ({
      body: { scope, target = '', reason },
      environment: { id: environmentId },
      actor,
      at,
      audit,
      auditRefused,
    }) => {
      if ((scope === 'environment') !== (target === '')) {
        return refuseField(
          'target',
          scope === 'environment' ? 'must be absent: the environment is that of the path' : 'is required',
        )
      }
      if (stopCondition({ scope, names: [target] }).length > CONDITION_CHARS) {
        return refuseField('target', 'is too long to be named in a condition')
      }
      const id = uuidv7(at)
      const { kind: stopperKind, id: stopperId, name: stoppedBy } = actor
      const asked = { environmentId, id, scope, target, reason, stoppedAt: at, stopperKind, stopperId, stoppedBy }
      const made = await storage.stop(asked, audit(id, { scope, target, reason }))
      if (made.outcome === 'no_environment') return refuse('not_found', 'The environment does not exist')
      if (made.outcome === 'too_many' || made.outcome === 'too_many_names') {
        const refusal = made.outcome === 'too_many' ? TOO_MANY : TOO_MANY_NAMES
        await storage.appendAudit(auditRefused(environmentId, { scope, target, reason: refusal.detail }))
        return refusal
      }
      configurations.published(environmentId)
      const rejected = await rejectStopped(storage, environmentId, now(), () => feed.look())
      return { ...toStop(made.stop), isNew: made.outcome === 'stopped', isKnown: made.isKnown, rejected }
    },
  )

  serve('resume', async ({ params, body: { reason = null }, environment, actor, at, audit, auditRefused }) => {
    const stopId = params.stopId.toLowerCase()
    const how = { at, by: actor.name, reason }
    const { outcome, stop } = foundOr(
      await storage.resume(environment.id, stopId, how, audit(stopId, { reason })),
      NO_STOP,
    )
    if (outcome === 'resumed') {
      configurations.published(environment.id)
      return toStop(stop)
    }
    await storage.appendAudit(auditRefused(stopId, { reason }))
    return refuse('conflict', `It was resumed by ${stop.resumedBy} already`, { current: { ...toStop(stop) } })
  })

  async function clientsOf(environmentId: string): Promise<StopPage['clients']> {
    const { counts } = await storage.listConfigurationClients(environmentId, undefined, { limit: 1, after: null })
    const clientsIn = (...standings: string[]) =>
      counts.filter(({ standing }) => standings.includes(standing)).reduce((sum, { clients }) => sum + clients, 0)
    return {
      confirmed: clientsIn('CURRENT'),
      unconfirmed: clientsIn('UPDATING', 'BEHIND'),
      silent: clientsIn('SILENT'),
    }
  }
}

function toStop(row: StopRow): Stop {
  const shown = pick(row, 'id', 'scope', 'target', 'reason', 'stoppedBy', 'resumedBy', 'resumeReason')
  return { ...shown, stoppedAt: isoTime(row.stoppedAt), resumedAt: isoTime(row.resumedAt) }
}
