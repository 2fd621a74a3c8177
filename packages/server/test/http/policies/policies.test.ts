import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { ACTIONS, SEVERITIES as POLICY_SEVERITIES } from '@tacho/policy/decide.ts'
import { POLICY_LIMITS } from '@tacho/policy/limits.ts'
import { configurationCalls, policyBody, type ConfigurationCalls } from '../../setup/configuration-service.ts'
import { startService, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf, UNKNOWN_ID } from '../web/contract.ts'
import { POLICY_ACTIONS, SEVERITIES } from '@tacho/contract/engine/words.ts'

let service: Service
let calls: ConfigurationCalls
before(async () => {
  service = await startService()
  calls = await configurationCalls(service)
})
after(() => service.close())

const create = (given: object, path = calls.policies) => service.operator(path, { body: { ...policyBody(), ...given } })
const push = (policyId: string, given: object) => {
  const { policyId: _, ...version } = policyBody()
  return service.operator(`${calls.policies}/${policyId}/versions`, { body: { ...version, ...given } })
}

test('a policy is created with its first version, its condition unchanged', async () => {
  const condition = '// why\ntool.name == "refund"  &&\n\ttool.input.amount > 100.0'
  const given = { policyId: 'no-refunds', condition, name: 'No refunds', description: 'Large ones', note: 'first' }
  const policy = replyOf('createPolicy', await create(given))
  const { createdAt, ...newest } = policy.newest
  assert.deepEqual(newest, {
    policyId: 'no-refunds',
    importedAt: null,
    version: '1',
    author: 'first token',
    note: 'first',
    name: 'No refunds',
    description: 'Large ones',
    condition,
    severity: 'HIGH',
    action: 'BLOCK',
    onError: 'act',
    approvers: 1,
    grants: 'allow',
    template: null,
  })
  assert.equal(createdAt, policy.createdAt)
  const path = `${calls.policies}/no-refunds`
  assert.deepEqual(replyOf('readPolicy', await service.operator(path)), policy)
  assert.deepEqual(replyOf('readPolicyVersion', await service.operator(`${path}/versions/1`)), policy.newest)
})

test('a policy without a name is named by its id', async () => {
  for (const given of [{}, { name: null, description: null }]) {
    const { policyId, newest } = replyOf('createPolicy', await create(given))
    assert.deepEqual([newest.name, newest.description], [policyId, null])
  }
})

test('every action and severity of the policy engine is accepted, and no other', async () => {
  assert.deepEqual([POLICY_ACTIONS, SEVERITIES], [ACTIONS, POLICY_SEVERITIES])
  for (const action of POLICY_ACTIONS) {
    for (const severity of SEVERITIES) replyOf('createPolicy', await create({ action, severity }))
  }
  for (const wrong of [{ action: 'block' }, { action: null }, { severity: 'FATAL' }, { severity: undefined }]) {
    assert.deepEqual(refusalOf(await create(wrong)), [400, 'invalid_request'], JSON.stringify(wrong))
  }
})

test('a version says what a condition that cannot be evaluated counts as; what holds calls up acts by default', async () => {
  for (const [action, severity, given, onError] of [
    ['BLOCK', 'LOW', undefined, 'act'],
    ['REQUIRE_APPROVAL', 'MEDIUM', null, 'act'],
    ['BLOCK', 'CRITICAL', 'ignore', 'ignore'],
    ['WARN', 'MEDIUM', undefined, 'ignore'],
    ['WARN', 'HIGH', undefined, 'act'],
    ['ALLOW', 'LOW', 'act', 'act'],
  ] as const) {
    const { newest, policyId } = replyOf('createPolicy', await create({ action, severity, onError: given }))
    assert.equal(newest.onError, onError, `${action} ${severity} ${String(given)}`)
    const other = onError === 'act' ? 'ignore' : 'act'
    const changed = replyOf('createPolicyVersion', await push(policyId, { action, severity, onError: other }))
    assert.deepEqual([changed.onError, changed.isNew], [other, true])
    const { fields } = replyOf(
      'diffPolicyVersions',
      await service.operator(`${calls.policies}/${policyId}/diff?from=1&to=2`),
    )
    assert.deepEqual(
      fields.map(({ field }) => field),
      ['onError'],
    )
  }
  for (const onError of ['ACT', '', 1]) {
    assert.deepEqual(refusalOf(await create({ onError })), [400, 'invalid_request'])
  }
})

test('onError is served and part of the revision', async () => {
  const { policyId } = await calls.newPolicy({ severity: 'LOW' })
  await calls.deploy([['policy', policyId, '1']])
  const { body: first } = await calls.load()
  assert.equal(first.policies.find((policy) => policy.policyId === policyId)?.onError, 'act')
  replyOf('createPolicyVersion', await push(policyId, { severity: 'LOW', onError: 'ignore' }))
  await calls.deploy([['policy', policyId, '2']])
  const { body: second } = await calls.load()
  assert.equal(second.policies.find((policy) => policy.policyId === policyId)?.onError, 'ignore')
  assert.notEqual(second.revision, first.revision)
  await calls.deploy([['policy', policyId, null]])
})

test('a condition that does not parse, type-check or return bool is rejected with its position', async () => {
  for (const [condition, place] of [
    ['tool.name ==', '1:'],
    ['tool.name == "a" &&\n  tool.nam == "b"', '2:3'],
    ['amount > 1', '1:1'],
    ['tool.name', '1:1'],
    ['tool.name.matches("(")', '1:'],
    ['run.cost > "x"', '1:1'],
    [`"${'x'.repeat(POLICY_LIMITS.sourceChars)}" == ""`, '1:'],
  ] as const) {
    for (const answer of [await create({ condition }), await push('no-refunds', { condition })]) {
      assert.deepEqual(refusalOf(answer), [400, 'invalid_request'], condition)
      const { errors } = answer.body as { errors: { path: string; message: string }[] }
      assert.equal(errors[0]?.path, '/condition')
      assert.ok(errors[0].message.startsWith(place), `${condition}: ${errors[0].message}`)
    }
  }
  const { newest } = replyOf('readPolicy', await service.operator(`${calls.policies}/no-refunds`))
  assert.equal(newest.version, '1', 'nothing was saved')
})

test('an id is a slug, unique regardless of case', async () => {
  const longest = 'a'.repeat(LIMITS.policyIdChars)
  for (const policyId of ['a', '0', 'a-b_c.d', '9-lives', longest]) {
    assert.equal(replyOf('createPolicy', await create({ policyId })).policyId, policyId)
  }
  for (const policyId of ['', 'A', '-a', '.', '..', '_a', 'a b', 'ä', 'a/b', 'a%', `${longest}a`, null, 1]) {
    assert.deepEqual(refusalOf(await create({ policyId })), [400, 'invalid_request'], String(policyId))
  }
  assert.deepEqual(refusalOf(await create({ policyId: 'a' })), [409, 'conflict'])
})

test('each limit holds at the limit and one past it', async () => {
  const condition = `true //${' '.repeat(POLICY_LIMITS.sourceChars - 7)}`
  for (const [field, longest] of [
    ['name', 'n'.repeat(LIMITS.nameChars)],
    ['description', 'd'.repeat(LIMITS.descriptionChars)],
    ['note', 'n'.repeat(LIMITS.noteChars)],
    ['condition', condition],
  ] as const) {
    replyOf('createPolicy', await create({ [field]: longest }))
    assert.deepEqual(refusalOf(await create({ [field]: `${longest} ` })), [400, 'invalid_request'], field)
    assert.deepEqual(refusalOf(await create({ [field]: 'a\0b' })), [400, 'invalid_request'], field)
  }
  for (const field of ['name', 'description', 'condition']) {
    assert.deepEqual(refusalOf(await create({ [field]: '' })), [400, 'invalid_request'], field)
  }
})

test('versions are added; equal content adds none, and an author cannot overwrite an unseen version', async () => {
  const { policyId, newest } = await calls.newPolicy()
  const { version: _v, author: _a, createdAt: _c, policyId: _p, importedAt: _i, ...said } = newest
  const again = replyOf('createPolicyVersion', await push(policyId, { ...said, note: 'other' }))
  assert.deepEqual([again.version, again.isNew], ['1', false])
  const two = replyOf('createPolicyVersion', await push(policyId, { ...said, severity: 'LOW', follows: '1' }))
  assert.deepEqual([two.version, two.isNew], ['2', true])
  const late = await push(policyId, { ...said, severity: 'MEDIUM', follows: '1' })
  assert.deepEqual(refusalOf(late), [409, 'conflict'])
  assert.equal((late.body as { current: { version: string } }).current.version, '2')
  const versions = `${calls.policies}/${policyId}/versions`
  const first = replyOf('listPolicyVersions', await service.operator(`${versions}?limit=1`))
  const rest = replyOf('listPolicyVersions', await service.operator(`${versions}?cursor=${first.nextCursor}`))
  assert.deepEqual(
    [...first.items, ...rest.items].map(({ version }) => version),
    ['2', '1'],
  )
})

test('two versions are compared by their fields', async () => {
  const { policyId } = await calls.newPolicy({ condition: 'tool.name == "a" ||\ntool.name == "b"', name: 'N' })
  const changed = { condition: 'tool.name == "a" ||\ntool.name == "c"', name: 'N', severity: 'LOW', description: 'd' }
  replyOf('createPolicyVersion', await push(policyId, changed))
  const diff = await service.operator(`${calls.policies}/${policyId}/diff?from=1&to=2`)
  assert.deepEqual(replyOf('diffPolicyVersions', diff).fields, [
    {
      field: 'condition',
      exact: true,
      lines: [
        { change: 'same', text: 'tool.name == "a" ||' },
        { change: 'removed', text: 'tool.name == "b"' },
        { change: 'added', text: 'tool.name == "c"' },
      ],
    },
    {
      field: 'severity',
      exact: true,
      lines: [
        { change: 'removed', text: 'HIGH' },
        { change: 'added', text: 'LOW' },
      ],
    },
    { field: 'description', exact: true, lines: [{ change: 'added', text: 'd' }] },
  ])
})

test('unknown and foreign policies get the same 404', async () => {
  const { policyId } = await calls.newPolicy()
  const foreign = await service.newTenant('foreign')
  const theirs = `/workspaces/${foreign.workspaceId}/policies`
  const { policyId: _, ...version } = policyBody()
  const asks = (policies: string, id: string) => [
    { path: `${policies}/${id}` },
    { path: `${policies}/${id}/versions` },
    { path: `${policies}/${id}/versions/1` },
    { path: `${policies}/${id}/diff?from=1&to=1` },
    { path: `${policies}/${id}/versions`, body: version },
  ]
  const unknown = ['never', 'NEVER', '%00', 'a'.repeat(300), '%ED%A0%80x']
  for (const id of unknown) {
    const asked = asks(calls.policies, id)
    for (const [index, ask] of asks(theirs, policyId).entries()) {
      const one = await service.operator(ask.path, { body: ask.body })
      const two = await service.operator(asked[index]?.path ?? '', { body: ask.body })
      if (id.startsWith('%ED')) {
        assert.equal(refusalOf(two)[0], 400, 'not UTF-8 at all')
        continue
      }
      assert.deepEqual([refusalOf(one), refusalOf(two)], Array(2).fill([404, 'not_found']), ask.path)
      // No store can hold NUL, so such an id is refused before any lookup.
      if (id.includes('%00')) continue
      assert.equal((one.body as { detail: string }).detail, (two.body as { detail: string }).detail)
    }
  }
  assert.deepEqual(refusalOf(await service.operator(`${calls.policies}/${policyId}/versions/2`)), [404, 'not_found'])
  assert.deepEqual(refusalOf(await create({}, `/workspaces/${UNKNOWN_ID}/policies`)), [404, 'not_found'])
})
