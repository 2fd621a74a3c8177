/** Loaded with the first batch. */
import { verdictOf, type Verdict } from './answer.ts'
import { piecesOf } from './batch.ts'
import { gzip } from './compress.ts'
import type { Request } from './http.ts'
import type { QueuedItem } from './queue.ts'

export { sendRequest } from './http.ts'

export async function sendBatch(
  request: Request,
  batch: readonly QueuedItem[],
  { compress, requestTimeoutMs }: { readonly compress: boolean; readonly requestTimeoutMs: number },
): Promise<Verdict> {
  const pieces = piecesOf(batch)
  const packed = compress ? await gzip(pieces) : undefined
  const result = await request('POST', '/events/batch', {
    body: packed ?? pieces,
    headers: packed ? { 'content-encoding': 'gzip' } : {},
    timeoutMs: requestTimeoutMs,
  })
  return verdictOf(
    result,
    batch.map(({ id }) => id),
  )
}
