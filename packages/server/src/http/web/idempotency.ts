import { createHash } from 'node:crypto'
import { IDEMPOTENCY_KEY_HEADER, REPLAYED_HEADER } from '@tacho/contract/web/idempotency.ts'
import type { Route } from '@tacho/contract/web/route.ts'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { IDEMPOTENCY_KEPT_MS, type IdempotencyKey, type KeptReply } from '../../storage/engine/idempotency.ts'
import type { Storage } from '../../storage/storage.ts'
import { refuse } from './reply-error.ts'
import type { Answer, AnswerOnce } from './serve-route.ts'
import { actorOf } from '../people/access.ts'

/** Every creation ends sooner, so an older claim belongs to a dead request. */
const DEAD_MS = 60 * 1000

export function onceByKey(
  route: Route,
  storage: Pick<Storage, 'claimIdempotencyKey' | 'keepIdempotentReply' | 'releaseIdempotencyKey'>,
  now: () => number,
): AnswerOnce | null {
  if (!route.headers || !Object.hasOwn(route.headers.properties, IDEMPOTENCY_KEY_HEADER)) return null

  return async (request, reply, answer) => {
    const text = request.headers[IDEMPOTENCY_KEY_HEADER.toLowerCase()]
    if (typeof text !== 'string') return answer()
    const { kind, id } = actorOf(request)
    const key: IdempotencyKey = { actorKind: kind, actorId: id, key: text }
    const claimedAt = now()
    const outcome = await storage.claimIdempotencyKey(key, {
      fingerprint: fingerprintOf(request),
      now: claimedAt,
      freeUntil: claimedAt - IDEMPOTENCY_KEPT_MS,
      deadUntil: claimedAt - DEAD_MS,
    })
    if (outcome === 'claimed') return first(request, key, claimedAt, answer)
    if (outcome === 'other') return refuse('conflict', 'This Idempotency-Key belongs to another request')
    if (outcome === 'running') {
      void reply.header('retry-after', 1)
      return refuse('conflict', 'The first request with this Idempotency-Key is still running')
    }
    return again(reply, outcome)
  }

  async function first(request: FastifyRequest, key: IdempotencyKey, claimedAt: number, answer: () => Promise<Answer>) {
    const finish = async (kept: KeptReply | null) => {
      try {
        if (kept === null) await storage.releaseIdempotencyKey(key, claimedAt)
        else await storage.keepIdempotentReply(key, claimedAt, kept)
      } catch (error) {
        // The creation succeeded, so reply; the claim expires by itself.
        request.log.error({ requestId: request.id, err: error }, 'could not store the idempotency key')
      }
    }
    let given: Answer
    try {
      given = await answer()
    } catch (error) {
      await finish(null)
      throw error
    }
    await finish(typeof given === 'string' ? { status: route.status, json: withoutSecret(given) } : null)
    return given
  }

  function withoutSecret(json: string): string {
    if (route.shownOnce === undefined) return json
    const { [route.shownOnce]: _, ...rest } = JSON.parse(json) as Record<string, unknown>
    return JSON.stringify(rest)
  }

  function again(reply: FastifyReply, { status, json }: KeptReply): Answer {
    if (route.shownOnce !== undefined) {
      const { id } = JSON.parse(json) as { id: string }
      const detail = `The first request with this Idempotency-Key created it and showed its ${route.shownOnce}`
      return refuse('conflict', detail, { current: { id } })
    }
    void reply.code(status).header(REPLAYED_HEADER, 'true').type('application/json; charset=utf-8').send(json)
    return null
  }
}

function fingerprintOf({ method, url, bodyBytes }: FastifyRequest): string {
  const [path] = url.split('?', 1)
  return createHash('sha256')
    .update(`${method} ${path}\n`)
    .update(bodyBytes ?? '')
    .digest('hex')
}
