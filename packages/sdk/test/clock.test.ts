/** Clients on machines with a wrong clock, against the real service. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startService, type Service } from '../../server/test/setup/service.ts'
import { Tacho, type Diagnostic } from '../src/index.ts'
import { hostRuntime } from '../src/delivery/runtime.ts'

const HOUR_MS = 3_600_000

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

interface Sent {
  timestamp: string
  label: string
  payload: object
}

/** A client whose clock is `aheadMs` ahead. The value may change. */
function client(aheadMs: () => number) {
  const diagnostics: Diagnostic[] = []
  const options = {
    baseUrl: service.url,
    apiKey: service.apiKey,
    agentName: 'a',
    onDiagnostic: (one: Diagnostic) => void diagnostics.push(one),
  }
  const tacho = new Tacho(options, { ...hostRuntime, now: () => Date.now() + aheadMs() })
  const timeline = async (runId: string) => (await service.api<{ events: Sent[] }>(`/runs/${runId}`)).body.events
  const saidOfClock = () => diagnostics.filter(({ code }) => code.startsWith('clock_')).map(({ message }) => message)
  return { tacho, timeline, saidOfClock, diagnostics }
}

test('events of a clock that is an hour ahead are stored with the time of the service, in order, and it is said once', async () => {
  const { tacho, timeline, saidOfClock, diagnostics } = client(() => HOUR_MS)
  const labels = Array.from({ length: 250 }, (_, n) => `step ${n}`)
  await tacho.run({ runId: 'ahead' }, async (run) => {
    for (const label of labels.slice(0, 120)) run.step(label, { quote: '"timestamp":1' })
    await tacho.flush()
    for (const label of labels.slice(120)) run.step(label)
  })
  const { left, rejected } = await tacho.flush()
  assert.deepEqual([left, rejected], [0, 0])
  const events: Sent[] = []
  const run = (await service.api<{ id: string }>('/runs/ahead')).body
  for (let cursor = ''; ;) {
    const path = `/environments/${service.environmentId}/runs/${run.id}/events?limit=200${cursor}`
    const page = (await service.operator<{ items: Sent[]; nextCursor: string | null }>(path)).body
    events.push(...page.items)
    if (page.nextCursor === null) break
    cursor = `&cursor=${encodeURIComponent(page.nextCursor)}`
  }
  assert.deepEqual(events.map(({ label }) => label).slice(0, -1), labels)
  for (const { timestamp } of events) assert.ok(Math.abs(Date.parse(timestamp) - Date.now()) < 60_000)
  assert.deepEqual(saidOfClock(), ['The clock of this machine is 60 minutes ahead. The times of events are corrected.'])
  assert.ok(!diagnostics.some(({ code }) => code === 'event_rejected' || code === 'delivery_failing'))
  assert.deepEqual((await timeline('ahead'))[0]?.payload, { quote: '"timestamp":1' })
})

test('a clock that is set right later counts again', async () => {
  let ahead = HOUR_MS
  const { tacho, timeline } = client(() => ahead)
  await tacho.run({ runId: 'set right' }, (run) => void run.step('wrong'))
  await tacho.flush()
  ahead = 0
  await tacho.run({ runId: 'notices' }, (run) => void run.step('notices'))
  await tacho.flush()
  await tacho.run({ runId: 'right' }, (run) => void run.step('right'))
  await tacho.flush()
  const [event] = await timeline('right')
  assert.ok(Math.abs(Date.parse(event?.timestamp ?? '') - Date.now()) < 60_000)
})

test('a clock that is hours behind is said once, and a time of the host that is too new stays rejected', async () => {
  const { tacho, saidOfClock } = client(() => -3 * HOUR_MS)
  for (const runId of ['behind', 'behind too']) {
    await tacho.run({ runId }, (run) => void run.step('x'))
    await tacho.flush()
  }
  assert.deepEqual(saidOfClock(), ['The clock of this machine is 180 minutes behind. Events have its time.'])
  const right = client(() => 0)
  await right.tacho.run((run) => void run.record({ type: 'NOTE', label: 'x', at: Date.now() + HOUR_MS }))
  assert.equal((await right.tacho.flush()).rejected, 1)
  assert.deepEqual(right.saidOfClock(), [])
})
