/** A batch of the largest size: 100 events of 10 kB. */
import { randomUUID } from 'node:crypto'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { BATCH_EVENTS } from './events.ts'

const SPARE_BYTES = 400

/** `renew` writes a new run id and new event ids into a copy of the body, so that its events are new. */
export function createLargeBatch(): { body: Buffer; renew(body: Buffer): void } {
  const timestamp = Date.now()
  const runId = randomUUID()
  const text = 'A long answer of a model. '.repeat(LIMITS.batchBytes)
  const ids = Array.from({ length: BATCH_EVENTS }, () => randomUUID())
  const events = ids.map((eventId, n) => ({
    eventId,
    clientId: 'bench-client',
    runId,
    agentName: 'Loud agent',
    eventType: 'AGENT_STEP',
    label: `step ${n}`,
    timestamp,
    payload: { text: text.slice(0, Math.floor(LIMITS.batchBytes / BATCH_EVENTS) - SPARE_BYTES) },
  }))
  const body = Buffer.from(JSON.stringify(events))
  const places = ids.map((id) => body.indexOf(id))
  const runs = events.map((_, n) => body.indexOf(runId, places[n]))
  return {
    body,
    renew(copy) {
      const run = randomUUID()
      for (const place of places) copy.write(randomUUID(), place, 'latin1')
      for (const place of runs) copy.write(run, place, 'latin1')
    },
  }
}
