/** Fills a store without a server: a server would refuse such old events, and is slower. */
import { Readable } from 'node:stream'
import { validateBatch } from '@tacho/server/domain/record/event.ts'
import { createFirstTenant } from '@tacho/server/maintenance/first-tenant.ts'
import { bodyWriter } from '../load/bodies.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import { timeOf, type Plot } from '../load/shapes.ts'
import { API_KEY_ID, FIRST_TENANT } from '../server.ts'
import type { Store } from './engine.ts'

export interface Batch {
  /** Events as JSON. */
  text: string
  receivedAt: number
}

/** Number of batches that are stored at the same time. */
const CONCURRENCY = 40

/** Stores the batches, and returns their environment. */
export async function fillStore(store: Store, batches: Iterable<Batch>): Promise<string> {
  const storage = await store.open()
  await createFirstTenant(storage, FIRST_TENANT, Date.now())
  const { environmentId = '' } = (await storage.findApiKey(API_KEY_ID)) ?? {}
  const append = async ({ text, receivedAt }: Batch): Promise<void> => {
    const judged = validateBatch(Buffer.from(text), { workspaceId: '', now: receivedAt })
    if (!judged.ok) throw new Error('A load has valid events only')
    await storage.appendEvents({ environmentId, receivedAt, events: judged.batch.events, rejections: [] })
  }
  await Readable.from(batches).forEach(append, { concurrency: CONCURRENCY })
  await storage.close()
  return environmentId
}

/** The requests of a history, each received when its events happened. */
export function* historyBatches(plot: Plot, requests: number): Generator<Batch> {
  const body = bodyWriter(plot)
  for (let n = 0; n < requests; n++) {
    yield { text: body(n).toString('latin1'), receivedAt: timeOf(plot, n, BATCH_EVENTS) }
  }
}
