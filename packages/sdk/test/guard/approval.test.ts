/** Answers about approvals that must not let a tool run. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Tacho, ToolBlockedError } from '../../src/index.ts'
import type { Fetch } from '../../src/delivery/runtime.ts'
import { FakeService } from '../../src/testing/fake-service.ts'

const POLICY = {
  policyId: 'p',
  name: 'p',
  version: '1',
  condition: 'true',
  severity: 'HIGH',
  action: 'REQUIRE_APPROVAL',
}

/** Result of a guarded call if the service's answers about approvals are changed by `change`. */
async function resultWith(change: (answer: Record<string, unknown>, method: string) => void): Promise<string> {
  const service = new FakeService('approve')
  service.setPolicies([POLICY])
  const fetch: Fetch = async (url, init) => {
    const reply = await service.fetch(url, init)
    if (!url.includes('/firewall-approvals')) return reply
    const answer = (await new Response(reply.body as unknown as ReadableStream).json()) as Record<string, unknown>
    change(answer, init.method)
    return new Response(JSON.stringify(answer), { status: reply.status })
  }
  const tacho = new Tacho({ apiKey: 'fake', baseUrl: 'http://localhost', fetch, onDiagnostic: () => undefined })
  try {
    return await tacho.guard((_: object) => 'ran', { name: 'refund', configurationWaitMs: 60_000 })({ amount: 1 })
  } catch (error) {
    if (error instanceof ToolBlockedError) return error.code
    throw error
  } finally {
    await tacho.shutdown(0)
  }
}

test('an unchanged answer lets the tool run', async () => {
  assert.equal(await resultWith(() => undefined), 'ran')
})

for (const [name, change] of Object.entries<(answer: Record<string, unknown>) => void>({
  'another input hash': (answer) => (answer['inputHash'] = '0'.repeat(64)),
  'another tool': (answer) => (answer['toolName'] = 'transfer'),
  'APPROVED, and null as decidedAt': (answer) => Object.assign(answer, { status: 'APPROVED', decidedAt: null }),
  'APPROVED without decidedAt': (answer) => {
    answer['status'] = 'APPROVED'
    delete answer['decidedAt']
  },
  'an unknown status': (answer) => (answer['status'] = 'GRANTED'),
  'another id': (answer) => (answer['id'] = 'another'),
})) {
  for (const asked of ['POST', 'GET']) {
    if (name === 'another id' && asked === 'POST') continue
    test(`the tool does not run if the answer to ${asked} has ${name}`, async () => {
      const result = await resultWith((answer, method) => {
        if (method === asked) change(answer)
      })
      assert.equal(result, 'approval_unavailable')
    })
  }
}
