/** A process whose call waits for a person until a signal ends the process. Prints what its service stores. */
import { writeSync } from 'node:fs'
import { Tacho } from '../../src/index.ts'
import { FakeService } from '../../src/testing/fake-service.ts'
import { policy } from './scene.ts'

const service = new FakeService('approve')
service.setPolicies([policy('REQUIRE_APPROVAL')])
const fetch: typeof service.fetch = async (url, init) => {
  if (init.method === 'GET' && url.includes('/firewall-approvals/')) {
    writeSync(1, 'waiting\n')
    await new Promise((resolve) => setTimeout(resolve, 60_000))
  }
  const before = service.events.length
  const reply = await service.fetch(url, init)
  for (const { eventType, payload } of service.events.slice(before)) {
    const reason = eventType === 'APPROVAL_WITHDRAWN' ? ` ${payload['reason'] as string}` : ''
    writeSync(1, `${eventType}${reason}\n`)
  }
  return reply
}
const tacho = new Tacho({
  apiKey: 'k',
  baseUrl: 'http://localhost',
  fetch,
  flushOnSignals: true,
  guard: { configurationWaitMs: 60_000 },
})
const refund = tacho.guard(() => writeSync(1, 'RAN\n'), { name: 'refund' })
await tacho.run(() => refund())
