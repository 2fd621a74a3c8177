/** Counts OpenTelemetry requests that exporters never repeat, by API key: their spans are lost, and the run looks complete. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isAddressAllowed } from '../tenants/allowed-addresses.ts'
import type { LostRequests } from '../../storage/tenants/tenants.ts'
import { type FoundApiKey, createUnknownKeys } from '../tenants/api-key.ts'
import type { CredentialCache } from '../tenants/credential-cache.ts'
import { isTelemetry } from './exporters.ts'

/** Other statuses are retried (OTLP 1.9, "Retryable Response Codes"), or have no valid key. */
const NEVER_REPEATED = new Set([400, 403, 404, 405, 413, 415])
const KEYS_MAX = 10_000
const REASON_CHARS = 500

export type LostRequestCounts = ReturnType<typeof createLostRequestCounts>

export function createLostRequestCounts({ keys, now }: { keys: CredentialCache<FoundApiKey>; now: () => number }) {
  const unknownKeys = createUnknownKeys()
  let ofKeys = new Map<string, LostRequests>()
  return {
    /** The key may be unknown: a wrong address is not behind the hook that checks it. */
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
    take(): LostRequests[] {
      const taken = [...ofKeys.values()]
      ofKeys = new Map()
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

/** Replies are our own problem documents. */
function reasonOf(payload: unknown): string {
  const { title, detail } = JSON.parse(String(payload)) as { title: string; detail?: string }
  return detail ?? title
}
