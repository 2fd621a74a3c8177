import type { BatchResult } from '@tacho/contract/record/event.ts'
import { IMPORT_HEADER } from '@tacho/contract/engine/words.ts'
import { ROUTES } from '@tacho/contract/web/routes.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Deps } from '../web/deps.ts'
import { batchResult, toldBatch, type ValidatedBatch } from '../../domain/record/event.ts'
import type { TelemetryPart } from '../../domain/record/otlp/packed-telemetry.ts'
import type { EventVerdict } from '../../storage/record/events.ts'
import type { Storage } from '../../storage/storage.ts'
import { StorageError } from '../../storage/engine/store.ts'
import { familyOf, tenantOf } from '../tenants/api-key.ts'
import { holderOf } from '../tenants/rate-limit.ts'
import { judgingByOld } from '../policies/configuration-clients.ts'
import { isRefusal, refuse } from '../web/reply-error.ts'
import { serveRoute } from '../web/serve-route.ts'

export function eventsRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, bodyValidator, memory, replies, metrics, lostRequests, configurationClients, now } = deps
  const admit = admitEvents(storage)

  serveRoute(
    app,
    ROUTES.recordEvents,
    { memory, replies, admit, rawBody: true },
    async ({ request }): Promise<BatchResult | ReturnType<typeof refuse>> => {
      const handedOver = await handOver(request)
      if (isRefusal(handedOver)) return handedOver
      const result = batchResult(handedOver.told, await handedOver.verdicts)
      metrics.recordBatch(result)
      lostRequests.noteSpool(request)
      return result
    },
  )

  /** Returns without the events: while the store works, each garbage collection would copy them. */
  async function handOver(request: FastifyRequest) {
    const { workspaceId, environmentId } = tenantOf(request)
    const receivedAt = now()
    const isImport = request.headers[IMPORT_HEADER] === 'true'
    const body = ownBytes(request.bodyBytes ?? Buffer.alloc(0))
    const context = { workspaceId, now: receivedAt, isImport }
    const validated = await bodyValidator.validateBatch(body, context, holderOf(request))
    if (!validated.ok) return refuse(validated.code, validated.detail)
    const { batch } = validated
    // After this loop, the store owns the body and the payloads in it.
    for (const [clientId, had] of judgingByOld(batch.events)) {
      const keyId = request.apiKey?.id ?? ''
      configurationClients.record({ environmentId, keyId, clientId, had, tag: '', isClosing: false })
    }
    return { told: toldBatch(batch), verdicts: storeBatch(storage, environmentId, receivedAt, batch, request) }
  }
}

/** The body as a whole buffer, which can move to another thread. Small bodies share a buffer with other bytes. */
const ownBytes = (body: Buffer): Buffer =>
  body.length === body.buffer.byteLength ? body : Buffer.from(new Uint8Array(body).buffer)

/** On a full disk, valid events come back as retryable after validation. */
export const admitEvents = (storage: Storage) => () =>
  storage.writesRefused() === 'overloaded' ? refuse('overloaded') : null

export const admitWrites = (storage: Storage) => () => {
  const refused = storage.writesRefused()
  return refused === null ? null : refuse(refused)
}

export function storeBatch(
  storage: Storage,
  environmentId: string,
  receivedAt: number,
  recorded: Pick<ValidatedBatch, 'body' | 'events' | 'refused'> | TelemetryPart,
  request: FastifyRequest,
): Promise<EventVerdict[] | null> {
  const { events, refused } = recorded
  if ('length' in events && events.length === 0 && refused.length === 0) return Promise.resolve([])
  const [holder, keyFamily] = [holderOf(request), familyOf(request)]
  const batch = { environmentId, receivedAt, rejections: refused, holder, keyFamily }
  const rows = 'length' in events ? { events, body: 'body' in recorded ? recorded.body : null } : events
  return storage.appendEvents({ ...batch, ...rows }).catch((error: unknown) => {
    if (!(error instanceof StorageError)) throw error
    request.log.warn({ requestId: request.id, code: error.code, reason: error.message }, 'could not store events')
    return null
  })
}
