/** Retries reads that the server temporarily refuses: too many requests (429), or not ready (503). */
import { retryAfterMs } from '@tacho/client/read-reply.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { delayMs } from '../../../sdk/src/delivery/retry.ts'
import { httpFetch } from '@tacho/guards/http-fetch.ts'

const MOST_REPEATS = 4
/** Maximum milliseconds of all waits together. They must stay below the client's timeout. */
const MOST_WAIT_MS = 20_000
const REPEATED = new Set([429, 503])

/** A `fetch` that retries reads. Other requests are sent once. */
export function patientFetch(fetch = httpFetch, random = Math.random): typeof globalThis.fetch {
  return async (target, request) => {
    let left = MOST_WAIT_MS
    for (let attempt = 0; ; attempt++) {
      const response = await fetch(target, request)
      const isRead = (request?.method ?? 'GET') === 'GET'
      if (!isRead || !REPEATED.has(response.status) || attempt === MOST_REPEATS) return response
      const asked = retryAfterMs(response.headers.get('Retry-After'), Date.now())
      const delay = delayMs(attempt + 1, asked ?? undefined, random())
      if (delay > left) return response
      left -= delay
      await response.body?.cancel()
      await sleep(delay, undefined, request?.signal ? { signal: request.signal } : {})
    }
  }
}
