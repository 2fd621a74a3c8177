/** Delivery of events: "Client handling" of POST /events/batch, "Errors" and "Limits". */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { RELEASE, type Rule } from '../rule.ts'
import { acceptAll, garbage, hangUp, judge, refuse, type Answer, type SentEvent } from '../scripted-service.ts'

const BATCH_EVENTS = 100
const BATCH_BYTES = 1_048_576
const PAYLOAD_BYTES = 262_144

const eventsOf = ({ json }: { json: unknown }): SentEvent[] => json as SentEvent[]
const idsOf = (request: { json: unknown }): string[] => eventsOf(request).map(({ eventId }) => eventId)

/** After this answer, the same event is sent again unchanged. */
function retried(name: string, title: string, trouble: Answer): Rule {
  return {
    id: `events/${name}`,
    title,
    async run(subject) {
      const { service } = subject
      service.script('events', trouble, acceptAll)
      const id = await subject.record()
      await subject.flush()
      const [first, second] = await service.until('events', 2)
      assert.deepEqual(idsOf(second as { json: unknown }), [id])
      assert.deepEqual(second?.json, first?.json, 'the event changed between two attempts')
    },
  }
}

/** After this answer, the same batch is never sent again. */
function notRepeated(status: number, title: string): Rule {
  return {
    id: `events/${status}`,
    title,
    async run(subject) {
      const { service } = subject
      service.script('events', refuse(status))
      for (let n = 0; n < 4; n++) await subject.record()
      await subject.flush(1_500)
      await sleep(1_500)
      const bodies = service.requests('events').map(({ text }) => text)
      assert.ok(bodies.length > 0, 'nothing was sent')
      assert.equal(new Set(bodies).size, bodies.length, 'the same batch was sent again')
    },
  }
}

export const eventRules: Rule[] = [
  {
    id: 'events/release',
    title: 'The release of the agent is in each payload, unless the payload names one itself',
    async run({ service, record, flush }) {
      await record()
      await record({ payload: { release: 'own', toolName: 'transfer' } })
      await flush()
      const payloads = service
        .requests('events')
        .flatMap(eventsOf)
        .map(({ payload }) => payload)
      assert.deepEqual(payloads, [{ release: RELEASE }, { release: 'own', toolName: 'transfer' }])
    },
  },
  {
    id: 'events/headers',
    title: 'Every request carries X-API-Key and says that it is JSON',
    async run(subject) {
      await subject.record()
      await subject.flush()
      const [request] = await subject.service.until('events', 1)
      assert.equal(request?.headers['x-api-key'], subject.apiKey)
      assert.match(request?.headers['content-type'] ?? '', /^application\/json\b/)
      assert.equal(eventsOf(request as { json: unknown })[0]?.['clientId'], subject.clientId)
    },
  },
  {
    id: 'events/per-id',
    title: 'Only the retryable ids of a batch are sent again; accepted and rejected ones never',
    async run(subject) {
      const { service } = subject
      // The service rejects all requests until the three are recorded.
      service.script('events', refuse(503))
      const ids: string[] = []
      for (let n = 0; n < 3; n++) ids.push(await subject.record({ label: `${n}` }))
      const [accepted, retryable, rejected] = ids as [string, string, string]
      const judged: string[] = []
      service.script(
        'events',
        judge(({ eventId }) => {
          const isFirst = !judged.includes(eventId)
          judged.push(eventId)
          if (eventId === rejected) return 'rejected'
          return eventId === retryable && isFirst ? 'retryable' : 'accepted'
        }),
      )
      await subject.flush()
      const times = (id: string) => judged.filter((each) => each === id).length
      assert.deepEqual(
        { accepted: times(accepted), retryable: times(retryable), rejected: times(rejected) },
        { accepted: 1, retryable: 2, rejected: 1 },
      )
    },
  },
  retried('server-error', 'After 500 an event is sent again under the same id', refuse(500)),
  retried('closed-socket', 'After a closed connection an event is sent again under the same id', hangUp),
  retried('too-many-requests', 'After 429 an event is sent again under the same id', refuse(429)),
  retried('garbage', 'An answer that is not understood confirms nothing', garbage),
  {
    id: 'events/retry-after',
    title: 'Retry-After is respected',
    async run(subject) {
      const { service } = subject
      service.script('events', refuse(429, { 'retry-after': '2' }), acceptAll)
      await subject.record()
      const flushed = subject.flush()
      await service.until('events', 1)
      await subject.record()
      await flushed
      const [first, second] = await service.until('events', 2)
      const waited = (second?.at ?? 0) - (first?.at ?? 0)
      assert.ok(waited >= 1_990, `the next request came after ${Math.round(waited)} ms`)
    },
  },
  {
    id: 'events/backoff',
    title: 'While the service fails, attempts become rare but never stop',
    async run(subject) {
      const { service } = subject
      service.script('events', refuse(500))
      for (let n = 0; n < 20; n++) await subject.record()
      await sleep(4_000)
      const attempts = service.requests('events').length
      assert.ok(attempts >= 1, 'nothing was sent')
      assert.ok(attempts <= 12, `${attempts} attempts within 4 seconds`)
      service.script('events', acceptAll)
      await service.until('events', attempts + 1)
    },
  },
  {
    id: 'events/limits',
    title: 'No batch has more than 100 events or 1 MiB, measured before it is sent',
    async run(subject) {
      const { service } = subject
      const ids = new Set<string>()
      for (let n = 0; n < 150; n++) ids.add(await subject.record())
      for (let n = 0; n < 60; n++) ids.add(await subject.record({ payload: { text: 'ä'.repeat(20_000) } }))
      await subject.flush()
      const requests = service.requests('events')
      for (const request of requests) {
        assert.ok(eventsOf(request).length <= BATCH_EVENTS, `${eventsOf(request).length} events in a batch`)
        assert.ok(request.bytes <= BATCH_BYTES, `${request.bytes} bytes in a batch`)
      }
      assert.deepEqual(new Set(requests.flatMap(idsOf)), ids)
    },
  },
  {
    id: 'events/payload-limit',
    title: 'A payload over 256 KiB is not sent whole, and delays no other event',
    async run(subject) {
      const { service } = subject
      await subject.record({ payload: { text: 'x'.repeat(PAYLOAD_BYTES) } })
      const small = await subject.record()
      await subject.flush()
      const events = service.requests('events').flatMap(eventsOf)
      assert.ok(events.some(({ eventId }) => eventId === small))
      for (const { payload } of events) {
        assert.ok(Buffer.byteLength(JSON.stringify(payload ?? {})) <= PAYLOAD_BYTES, 'the payload was sent whole')
      }
    },
  },
  notRepeated(400, 'A batch that is answered 400 is not sent again unchanged'),
  notRepeated(413, 'A batch that is answered 413 is not sent again unchanged'),
  {
    id: 'events/outage',
    title: 'An outage does not reach the host, and nothing is lost when it ends',
    async run(subject) {
      const { service } = subject
      service.script('events', hangUp)
      const ids = new Set<string>()
      for (let n = 0; n < 30; n++) ids.add(await subject.record())
      await service.until('events', 1)
      service.script('events', acceptAll)
      await subject.flush()
      const { recorded, accepted, rejected, dropped, queued } = await subject.counters()
      assert.equal(recorded, accepted + rejected + dropped + queued, 'the counters do not balance')
      assert.equal(accepted, ids.size)
    },
  },
]
