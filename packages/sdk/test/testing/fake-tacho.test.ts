import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeTacho } from '../../src/testing/fake-tacho.ts'

test('assertions find recorded events; a failure lists what was recorded', async () => {
  const fake = fakeTacho()
  await fake.tacho.run({ agentName: 'a', runId: 'r' }, (run) => {
    run.toolCall({ toolName: 'x', input: { list: [1, { deep: true }] } })
  })
  await fake.assertEvent('TOOL_CALL', { input: { list: [1, { deep: true }] } })
  await assert.rejects(fake.assertEvent('TOOL_CALL', { input: { list: [1] } }), /Found no event with .*Found:/)
  await assert.rejects(fake.assertEvent('LLM_CALL'), /"TOOL_CALL"/)
  await fake.assertNoEvent('TOOL_CALL', { toolName: 'y' })
  await assert.rejects(
    fake.assertNoEvent('TOOL_CALL', { toolName: 'x' }),
    /^Error: Expected no such event, but found \{/,
  )
  await fake.assertRun({ runId: 'r', agentName: 'a', status: 'COMPLETED' })
  await assert.rejects(fake.assertRun({ status: 'FAILED' }), /Found no run/)
  await assert.rejects(fake.assertDecision({ action: 'BLOCK' }), /none/)
  await fake.close()
})

test('runs have their outcome', async () => {
  const fake = fakeTacho()
  const { tacho } = fake
  await assert.rejects(tacho.run({ runId: 'failed' }, () => Promise.reject(new Error('no'))))
  tacho.startRun({ runId: 'open' }).step('one')
  const runs = await fake.runs()
  assert.deepEqual(
    runs.map(({ runId, status }) => [runId, status]),
    [
      ['failed', 'FAILED'],
      ['open', 'RUNNING'],
    ],
  )
  await fake.close()
})

test('an event that is sent twice is listed once', async () => {
  const fake = fakeTacho()
  fake.setDown(true)
  const run = fake.tacho.startRun()
  run.step('one')
  await fake.tacho.flush(50)
  assert.deepEqual(fake.tacho.counters().accepted, 0)
  fake.setDown(false)
  assert.equal((await fake.events()).length, 1)
  await fake.close()
})

test('policies and prompts can change during a test', async () => {
  const fake = fakeTacho()
  const decide = async () => (await fake.tacho.decide({ toolName: 'x' })).action
  assert.equal(await decide(), 'ALLOW')
  const block = { policyId: 'p', name: 'p', version: '1', condition: 'true', severity: 'HIGH', action: 'BLOCK' }
  await fake.deployPolicies([block])
  assert.equal(await decide(), 'BLOCK')
  await fake.deployPolicies([])
  assert.equal(await decide(), 'ALLOW')
  await fake.close()
})
