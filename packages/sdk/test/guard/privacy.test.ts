/** The data that guarded tools send out of the process. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inputHash } from '@tacho/policy/input/input-hash.ts'
import { sealedInputHash } from '@tacho/policy/input/sealed-input.ts'
import { ToolBlockedError } from '../../src/index.ts'
import { fakeTacho, type FakeOptions } from '../../src/testing/fake-tacho.ts'

const SECRET = `sk-proj-${'a1B2'.repeat(12)}`
const INPUT = { account: 'Ada Lovelace', token: SECRET, amount: 500 }

const policy = (action: string) => ({
  policyId: 'p',
  name: 'Transfers',
  version: '1',
  condition: 'tool.name == "transfer"',
  severity: 'HIGH',
  action,
})

async function transfer(action: string, options: FakeOptions = {}) {
  const fake = fakeTacho({ deployedPolicies: [policy(action)], approvals: 'approve', ...options })
  const tool = fake.tacho.guard((_: object) => `sent with ${SECRET}`, { name: 'transfer' })
  const error = await fake.tacho.run(() => tool(INPUT)).catch((thrown: unknown) => thrown)
  const left = [await fake.events(), await fake.issues(), await fake.approvals()]
  await fake.close()
  return { fake, error, left, text: JSON.stringify(left) }
}

test('operators see the masked input, with seals by which the service computes the hash that was approved', async () => {
  const { fake, text } = await transfer('REQUIRE_APPROVAL')
  const { payload } = await fake.assertEvent('POLICY_DECISION', { action: 'REQUIRE_APPROVAL' })
  const { account, token, amount } = payload['input'] as typeof INPUT
  assert.deepEqual([account, amount], ['Ada Lovelace', 500])
  assert.ok(!token.includes(SECRET))
  const seals = payload['inputSeals'] as Record<string, string>
  assert.deepEqual(Object.keys(seals), ['/token'])
  assert.equal(payload['inputHash'], sealedInputHash('transfer', payload['input'], seals))
  const [asked] = await fake.approvals()
  assert.equal(asked?.inputHash, payload['inputHash'])
  assert.ok(!text.includes(SECRET), 'a credential left the process')
})

for (const [name, input, pointers] of [
  ['nothing masked', { to: 'ada', lines: [{ order: 1 }] }, null],
  ['a member of a list', { lines: [{ order: 1 }, { password: 'hush', order: 2 }] }, ['/lines/1/password']],
  ['an object below a masked name', { credentials: { a: { b: 1 } }, 'a/b~': [SECRET] }, ['/credentials', '/a~1b~0/0']],
  ['a masked key', { by: { [SECRET]: 1 }, to: 'ada' }, ['/by']],
  ['a text beside a number', { note: `use ${SECRET}`, card: 4_111_111_111_111_111 }, ['/note', '/card']],
  ['an object that looks sealed', { token: SECRET, x: { tachoSeal: 'a'.repeat(64) } }, ['/token', '/x']],
  ['a key named __proto__', JSON.parse('{"__proto__":{"token":"hush"},"to":"ada"}') as object, ['/__proto__/token']],
] as const) {
  test(`the shown input and its seals give the approved hash: ${name}`, async () => {
    const fake = fakeTacho({ deployedPolicies: [policy('BLOCK')], masking: { cardNumber: true } })
    const tool = fake.tacho.guard((_: object) => 'sent', { name: 'transfer' })
    await fake.tacho.run(() => tool(input)).catch(() => undefined)
    const { payload } = await fake.assertEvent('POLICY_DECISION', { action: 'BLOCK' })
    const seals = payload['inputSeals'] as Record<string, string> | undefined
    assert.deepEqual(seals ? Object.keys(seals) : null, pointers)
    const hash = seals ? sealedInputHash('transfer', payload['input'], seals) : inputHash('transfer', payload['input'])
    assert.equal(payload['inputHash'], hash)
    await fake.close()
  })
}

for (const action of ['WARN', 'REQUIRE_APPROVAL', 'BLOCK']) {
  test(`metadata-only: no input and no output leave the process (${action})`, async () => {
    const { fake, text } = await transfer(action, { capture: 'metadata-only' })
    assert.ok(!text.includes('Ada'), 'the input left the process')
    assert.ok(!text.includes('sent with'), 'the output left the process')
    const { payload } = await fake.assertEvent('POLICY_DECISION', { action, toolName: 'transfer' })
    assert.ok(!('input' in payload))
    assert.equal(payload['inputHash'], inputHash('transfer', INPUT))
  })
}

test('metadata-only: only the class of a thrown error leaves the process', async () => {
  const fake = fakeTacho({ capture: 'metadata-only' })
  const fail = fake.tacho.guard(
    (): void => {
      throw new RangeError('there is no account of Ada')
    },
    { name: 'fail' },
  )
  await assert.rejects(
    fake.tacho.run(() => fail()),
    RangeError,
  )
  const { payload } = await fake.assertEvent('TOOL_CALL')
  assert.equal(payload['error'], 'RangeError')
  assert.ok(!JSON.stringify([await fake.events(), await fake.issues()]).includes('Ada'))
  await fake.close()
})

test('the error and its text for a model contain no input value', async () => {
  const { error } = await transfer('BLOCK')
  assert.ok(error instanceof ToolBlockedError)
  const said = `${error.message} ${error.modelText} ${error.stack} ${JSON.stringify(error)}`
  for (const value of ['Ada', SECRET, '500']) assert.ok(!said.replaceAll(/:\d+:\d+/g, '').includes(value), value)
})

test('an approval request contains the hash and not the input', async () => {
  const { fake } = await transfer('REQUIRE_APPROVAL')
  const [approval] = await fake.approvals()
  assert.match(String(approval?.inputHash), /^[0-9a-f]{64}$/)
  assert.ok(approval && !('input' in approval))
  assert.ok(!JSON.stringify(approval).includes('Ada'))
})

test('metadata-only: a decision keeps its revision, its detections and the conditions that failed', async () => {
  const failing = { ...policy('WARN'), condition: 'tool.input.account == 5' }
  const fake = fakeTacho({
    capture: 'metadata-only',
    deployedPolicies: [failing],
    guard: { budget: { toolCalls: 0 } },
  })
  const tool = fake.tacho.guard((_: object) => 'sent', { name: 'transfer' })
  await fake.tacho.run(() => tool({ recipient: 'Ada' }))
  const { payload } = await fake.assertEvent('POLICY_DECISION')
  assert.deepEqual(payload['detections'], ['BUDGET_EXCEEDED'])
  assert.equal(payload['revision'], fake.tacho.configuration.state.current?.revision)
  const [failure] = payload['failures'] as { policyId: string; message: string }[]
  assert.equal(failure?.policyId, 'p')
  assert.match(failure.message, /account/)
  assert.ok(!JSON.stringify(await fake.events()).includes('Ada'))
  await fake.close()
})
