/** Loaded with the first batch. */
import { verdictOf, type Verdict } from './answer.ts'
import { corrections, piecesOf } from './batch.ts'
import { gzip } from './compress.ts'
import type { Diagnostics } from './diagnostics.ts'
import type { Reply, Request } from './http.ts'
import type { Settings } from '../options.ts'
import type { QueuedItem } from './queue.ts'
import type { Runtime } from './runtime.ts'

export { sendRequest } from './http.ts'

export async function sendBatch(
  request: Request,
  batch: readonly QueuedItem[],
  { compress, requestTimeoutMs, baseUrl }: Pick<Settings, 'compress' | 'requestTimeoutMs' | 'baseUrl'>,
  { now }: Runtime,
  diagnostics: Diagnostics,
): Promise<Verdict> {
  const pieces = piecesOf(batch, baseUrl)
  const packed = compress ? await gzip(pieces) : undefined
  const { headers } = diagnostics
  diagnostics.headers = undefined
  const result = await request('POST', '/events/batch', {
    body: packed ?? pieces,
    headers: { ...headers, ...(packed && { 'content-encoding': 'gzip' }) },
    timeoutMs: requestTimeoutMs,
  })
  const verdict = verdictOf(
    result,
    batch.map(({ id }) => id),
  )
  if (verdict.kind !== 'events') {
    diagnostics.headers ??= headers
    return verdict
  }
  const offset = Date.parse((result as Reply).header('date') ?? '') - now()
  // A smaller offset may be a slow answer, or the whole seconds of the Date header.
  if (!(Math.abs(offset) > 60_000 || corrections.has(baseUrl))) return verdict
  return (await import('./clock.ts')).byServiceClock(baseUrl, offset, verdict, diagnostics.report)
}
