/**
 * Losses that clients suffer, by API key: OpenTelemetry requests that exporters never retry, whose spans are missing
 * from a run that looks complete, and full spools.
 */
import { SPOOL_HEADER, SPOOL_TROUBLES } from '@tacho/contract/engine/words.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isAddressAllowed } from '../tenants/allowed-addresses.ts'
import type { LostRequests, SpoolTroubleRow } from '../../storage/tenants/tenants.ts'
import { createUnknownKeys, tenantOf, type FoundApiKey } from '../tenants/api-key.ts'
import type { CredentialCache } from '../tenants/credential-cache.ts'
import type { Metrics } from '../web/metrics.ts'
import { isTelemetry } from './exporters.ts'

/** Statuses that exporters never retry (OTLP 1.9, "Retryable Response Codes"), except those of requests without a valid key. */
const NEVER_REPEATED = new Set([400, 403, 404, 405, 413, 415])
const KEYS_MAX = 10_000
const REASON_CHARS = 500

export type LostRequestCounts = ReturnType<typeof createLostRequestCounts>

interface Counting {
  keys: CredentialCache<FoundApiKey>
  metrics: Pick<Metrics, 'recordSpoolTrouble'>
  now: () => number
}

export function createLostRequestCounts({ keys, metrics, now }: Counting) {
  const unknownKeys = createUnknownKeys()
  let ofKeys = new Map<string, LostRequests>()
  let spools = new Map<string, SpoolTroubleRow>()
  return {
    /**
     * Clients report this with a batch. Call this only for accepted batches, because anybody with a key can send
     * others.
     */
    noteSpool(request: FastifyRequest): void {
      const trouble = SPOOL_TROUBLES.find((one) => one === request.headers[SPOOL_HEADER])
      const keyId = request.apiKey?.id
      if (trouble === undefined || keyId === undefined) return
      metrics.recordSpoolTrouble(trouble)
      if (spools.size >= KEYS_MAX && !spools.has(keyId)) return
      spools.set(keyId, { environmentId: tenantOf(request).environmentId, keyId, trouble, at: now() })
    },
    /** The key may be unknown: the hook that checks keys does not run for a wrong address. */
    async count(request: Pick<FastifyRequest, 'ip' | 'headers'>, reason: string): Promise<void> {
      const presented = request.headers['x-api-key']
      if (typeof presented !== 'string' || unknownKeys.refusal(request) !== null) return
      const key = await keys.find(presented, now())
      if (key === null || !isAddressAllowed(key.allowedAddresses, request.ip)) return unknownKeys.count(request)
      const { id: keyId, environmentId } = key
      if (ofKeys.size >= KEYS_MAX && !ofKeys.has(keyId)) return
      const requests = (ofKeys.get(keyId)?.requests ?? 0) + 1
      ofKeys.set(keyId, { environmentId, keyId, requests, at: now(), reason: reason.slice(0, REASON_CHARS) })
    },
    take(): { requests: LostRequests[]; spools: SpoolTroubleRow[] } {
      const taken = { requests: [...ofKeys.values()], spools: [...spools.values()] }
      ofKeys = new Map()
      spools = new Map()
      return taken
    },
  }
}

export function lostRequestHooks(app: FastifyInstance, { lostRequests }: { lostRequests: LostRequestCounts }): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    done()
    if (!NEVER_REPEATED.has(reply.statusCode) || !isTelemetry(request)) return
    const count = async () => lostRequests.count(request, reasonOf(payload))
    count().catch((err: unknown) => request.log.warn({ err }, 'could not count a lost request'))
  })
}

/** Every reply here is a problem document of ours. */
function reasonOf(payload: unknown): string {
  const { title, detail } = JSON.parse(String(payload)) as { title: string; detail?: string }
  return detail ?? title
}
