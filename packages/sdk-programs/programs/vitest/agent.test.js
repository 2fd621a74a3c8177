import { Tacho, ToolBlockedError } from '@tacho/sdk'
import { fakeTacho } from '@tacho/sdk/testing'
import { expect, test, vi } from 'vitest'

test('the fake service, with fake timers', async () => {
  vi.useFakeTimers()
  const fake = fakeTacho({ approvals: 'approve' })
  const policies = [
    { policyId: 'ask', name: 'Ask', version: '1', condition: 'true', severity: 'HIGH', action: 'REQUIRE_APPROVAL' },
  ]
  const refund = fake.tacho.guard(() => 'ran', { name: 'refund', policies })
  expect(await fake.tacho.run(() => refund())).toBe('ran')
  await fake.assertEvent('TOOL_CALL', { toolName: 'refund' })
  await fake.close()
  vi.useRealTimers()
})

test('the real service, whose client ends under fake timers', async () => {
  vi.useFakeTimers()
  const tacho = new Tacho({ agentName: 'vitest' })
  const refund = tacho.guard(() => 'ran', { name: 'refund' })
  await expect(tacho.run(() => refund())).rejects.toThrow(ToolBlockedError)
  expect((await tacho.shutdown(60_000)).left).toBe(0)
  vi.useRealTimers()
})
