const { Tacho, ToolBlockedError } = require('@tacho/sdk')
const { fakeTacho } = require('@tacho/sdk/testing')

const policy = {
  policyId: 'no-refund',
  name: 'No refund',
  version: '1',
  condition: 'tool.name == "refund"',
  severity: 'HIGH',
  action: 'BLOCK',
}

// package.json makes the timers fake before the SDK is loaded.
test('the fake service, with fake timers', async () => {
  const fake = fakeTacho({ deployedPolicies: [policy] })
  const refund = fake.tacho.guard(() => 'ran', { name: 'refund' })
  await expect(fake.tacho.run({ agentName: 'jest' }, () => refund())).rejects.toThrow(ToolBlockedError)
  await fake.assertEvent('POLICY_DECISION', { action: 'BLOCK' })
  await fake.close()
})

test('the real service; an error of Node is an error here too', async () => {
  const tacho = new Tacho({ agentName: 'jest' })
  const read = () => require('node:fs/promises').readFile('/none')
  await expect(tacho.run((run) => run.span('read', read))).rejects.toThrow('ENOENT')
  const refund = tacho.guard(() => 'ran', { name: 'refund' })
  await expect(tacho.run(() => refund())).rejects.toThrow(ToolBlockedError)
  expect((await tacho.shutdown()).left).toBe(0)
})
