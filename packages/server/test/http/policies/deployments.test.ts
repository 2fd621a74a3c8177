import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { configurationCalls, type ConfigurationCalls } from '../../setup/configuration-service.ts'
import { startService, type Answer, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf, UNKNOWN_ID } from '../web/contract.ts'

let service: Service
let calls: ConfigurationCalls
before(async () => {
  service = await startService()
  calls = await configurationCalls(service)
})
after(() => service.close())

const pathOf = (environmentId = service.environmentId) => `/environments/${environmentId}/deployments`
const list = async (environmentId?: string) =>
  replyOf('listDeployments', await service.operator(pathOf(environmentId))).items.map(
    ({ kind, id, version }) => `${kind} ${id} ${version}`,
  )
const changes = async (query = '', environmentId?: string) =>
  replyOf('listDeploymentChanges', await service.operator(`${pathOf(environmentId)}/changes${query}`))
const detailOf = ({ body }: Answer) => (body as unknown as { detail: string }).detail

const audited = async () =>
  replyOf('listAudit', await service.operator(`/workspaces/${calls.workspaceId}/audit?limit=200`)).items

/** Everything that a rejected publication must leave unchanged. */
async function state(): Promise<unknown> {
  const { body, headers } = await calls.load()
  return [body, headers.get('etag'), await list(), await list(calls.staging), (await changes()).items.length]
}

test('versions are deployed and removed in one publication', async () => {
  const [prompt, policy] = [await calls.newPrompt(), await calls.newPolicy()]
  const published = replyOf(
    'deploy',
    await calls.deploy([
      ['prompt', prompt.promptId.toUpperCase(), '1'],
      ['policy', policy.policyId, '1'],
    ]),
  )
  assert.deepEqual(published.changes, [
    { kind: 'prompt', id: prompt.promptId, name: prompt.name, from: null, to: '1', share: null },
    { kind: 'policy', id: policy.policyId, name: policy.policyId, from: null, to: '1', share: null },
  ])
  const deployed = replyOf('listDeployments', await service.operator(pathOf()))
  assert.equal(deployed.revision, published.revision)
  const row = deployed.items.find(({ id }) => id === policy.policyId)
  assert.deepEqual(
    [row?.version, row?.deployedBy, row?.publication, row?.name],
    ['1', 'first token', published.publication, policy.policyId],
  )
  const out = replyOf('deploy', await calls.deploy([['policy', policy.policyId, null]]))
  assert.deepEqual(out.changes, [
    { kind: 'policy', id: policy.policyId, name: policy.policyId, from: '1', to: null, share: null },
  ])
  assert.ok(!(await list()).some((line) => line.includes(policy.policyId)))
  const nothing = replyOf('deploy', await calls.deploy([['policy', policy.policyId, null]]))
  assert.deepEqual(nothing, { revision: out.revision, publication: null, changes: [] })
})

test('a foreign or missing version is rejected and audited, and nothing changes', async () => {
  const [policy, good] = [await calls.newPolicy(), await calls.newPolicy()]
  const foreign = await service.newTenant('foreign')
  const theirs = await service.operator<{ policyId: string }>(`/workspaces/${foreign.workspaceId}/policies`, {
    body: { policyId: 'theirs', condition: 'true', severity: 'LOW', action: 'WARN' },
  })
  const theirPrompt = await service.operator<{ promptId: string }>(`/workspaces/${foreign.workspaceId}/prompts`, {
    body: { name: 'theirs', content: 'x' },
  })
  assert.deepEqual([theirs.status, theirPrompt.status], [201, 201])
  const before = await state()
  for (const wrong of [
    ['policy', 'theirs', '1'],
    ['policy', 'theirs', null],
    ['prompt', theirPrompt.body.promptId, '1'],
    ['policy', policy.policyId, '2'],
    ['prompt', UNKNOWN_ID, '1'],
    ['prompt', 'no uuid', '1'],
  ] as const) {
    const refused = await calls.deploy([['policy', good.policyId, '1'], [...wrong]])
    assert.deepEqual(refusalOf(refused), [404, 'not_found'], wrong.join())
    assert.deepEqual(await state(), before)
  }
  const refusals = (await audited()).filter(({ action }) => action === 'configuration.deploy.refused')
  assert.equal(refusals.length, 6)
  assert.match(String(refusals[0]?.detail['reason']), /no uuid/)
})

test('a foreign environment looks like an unknown one, and nothing changes in it', async () => {
  const policy = await calls.newPolicy()
  const foreign = await service.newTenant('foreign environment')
  // Installation owners may enter both workspaces, but not mix them.
  const mixed = await calls.deploy([['policy', policy.policyId, '1']], foreign.environmentId)
  assert.deepEqual(refusalOf(mixed), [404, 'not_found'])
  assert.deepEqual(await list(foreign.environmentId), [])
  const unknown = await calls.deploy([['policy', policy.policyId, '1']], UNKNOWN_ID)
  assert.deepEqual(refusalOf(unknown), [404, 'not_found'])
  for (const path of [pathOf(UNKNOWN_ID), `${pathOf(UNKNOWN_ID)}/changes`]) {
    assert.deepEqual(refusalOf(await service.operator(path)), [404, 'not_found'])
  }
})

test('promoting copies everything, or a selection, from an environment of the same workspace', async () => {
  const [one, two] = [await calls.newPolicy(), await calls.newPolicy()]
  await calls.pushPolicy(one.policyId, 'true')
  await calls.deploy(
    [
      ['policy', one.policyId, '2'],
      ['policy', two.policyId, '1'],
    ],
    calls.staging,
  )
  const before = await list()
  const chosen = replyOf(
    'promote',
    await calls.promote({ from: calls.staging.toUpperCase(), items: [{ kind: 'policy', id: one.policyId }] }),
  )
  assert.deepEqual(
    chosen.changes.map(({ id, from, to }) => [id, from, to]),
    [[one.policyId, null, '2']],
  )
  const rest = replyOf('promote', await calls.promote({ from: calls.staging, note: 'release 7' }))
  assert.deepEqual(
    rest.changes.map(({ id }) => id),
    [two.policyId],
  )
  const expected = [...before, `policy ${one.policyId} 2`, `policy ${two.policyId} 1`]
  assert.deepEqual((await list()).toSorted(), expected.toSorted(), 'what was in force besides stays')
  const [change] = (await changes(`?kind=policy&id=${two.policyId}`)).items
  assert.deepEqual(
    [change?.action, change?.sourceEnvironmentId, change?.note, change?.by],
    ['PROMOTE', calls.staging, 'release 7', 'first token'],
  )
})

test('promoting from a foreign, unknown or the same environment, or an undeployed item, is rejected', async () => {
  const [policy, foreign] = [await calls.newPolicy(), await service.newTenant('source')]
  const before = await state()
  for (const from of [foreign.environmentId, UNKNOWN_ID]) {
    assert.deepEqual(refusalOf(await calls.promote({ from })), [404, 'not_found'])
  }
  const absent = await calls.promote({ from: calls.staging, items: [{ kind: 'policy', id: policy.policyId }] })
  assert.deepEqual(refusalOf(absent), [404, 'not_found'])
  assert.deepEqual(refusalOf(await calls.promote({ from: service.environmentId })), [400, 'invalid_request'])
  assert.deepEqual(await state(), before)
})

test('rolling back restores the previous version, then the one before, and says when there is none', async () => {
  const policy = await calls.newPolicy()
  for (const condition of ['true', 'false']) await calls.pushPolicy(policy.policyId, condition)
  const item: ['policy', string] = ['policy', policy.policyId]
  for (const version of ['1', '2', '3']) await calls.deploy([[...item, version]])
  for (const [from, to] of [
    ['3', '2'],
    ['2', '1'],
  ]) {
    const { changes } = replyOf('rollBack', await calls.rollBack([item]))
    assert.deepEqual(
      changes.map((change) => [change.from, change.to]),
      [[from, to]],
    )
  }
  const before = await state()
  const refused = await calls.rollBack([item])
  assert.deepEqual(refusalOf(refused), [409, 'conflict'])
  assert.match(detailOf(refused), new RegExp(policy.policyId))
  assert.deepEqual(refusalOf(await calls.rollBack([['policy', 'never']])), [409, 'conflict'])
  assert.deepEqual(await state(), before)
})

test('a rollback names what the person saw, and is refused when that is not in force any more', async () => {
  const policy = await calls.newPolicy()
  for (const condition of ['true', 'false']) await calls.pushPolicy(policy.policyId, condition)
  for (const version of ['1', '2', '3']) await calls.deploy([['policy', policy.policyId, version]])
  const goBack = (replaces: string | null, restores?: string) =>
    service.operator(`${pathOf()}/rollback`, {
      body: { items: [{ kind: 'policy', id: policy.policyId, replaces, restores }] },
    })
  const answers = await Promise.all([goBack('3', '2'), goBack('3', '2'), goBack('3', '2')])
  assert.deepEqual(
    answers.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 409, 409],
  )
  const before = await state()
  for (const [refused, sentence] of [
    [await goBack('3', '2'), `Expected version 3 of the policy ${policy.policyId} in force, but version 2 is`],
    [await goBack('9', '2'), `Expected version 9 of the policy ${policy.policyId} in force, but version 2 is`],
    [await goBack(null), `Expected no version of the policy ${policy.policyId} in force, but version 2 is`],
    [
      await goBack('2', '3'),
      `Expected a rollback of the policy ${policy.policyId} to restore version 3, but it would restore version 1`,
    ],
  ] as const) {
    assert.deepEqual(refusalOf(refused), [409, 'conflict'])
    assert.equal(detailOf(refused), `${sentence}. Nothing was changed`)
  }
  for (const wrong of [{ replaces: '0' }, { replaces: 2 }, { restores: null }, { restores: 'newest' }]) {
    const body = { items: [{ kind: 'policy', id: policy.policyId, ...wrong }] }
    const answer = await service.operator(`${pathOf()}/rollback`, { body })
    assert.deepEqual(refusalOf(answer), [400, 'invalid_request'], JSON.stringify(wrong))
  }
  assert.deepEqual(await state(), before)
  assert.equal((await goBack('2', '1')).status, 200)
})

test('a refusal names a prompt of the workspace by its name', async () => {
  const { promptId, name } = await calls.newPrompt()
  const item: ['prompt', string] = ['prompt', promptId]
  const theirs = await service.newTenant('of a secret name')
  const foreign = await service.operator<{ promptId: string }>(`/workspaces/${theirs.workspaceId}/prompts`, {
    body: { name: 'secret name', content: 'Hello' },
  })
  for (const [refused, sentence] of [
    [await calls.deploy([[...item, '9']]), `The workspace has no prompt ${name} with version 9`],
    [await calls.rollBack([item]), `There is no earlier version of the prompt ${name} in this environment`],
    [
      await calls.promote({ from: calls.staging, items: [{ kind: 'prompt', id: item[1] }] }),
      `The prompt ${name} is not deployed in the environment to promote from`,
    ],
    [
      await calls.deploy([['prompt', foreign.body.promptId, '1']]),
      `The workspace has no prompt ${foreign.body.promptId} with version 1`,
    ],
  ] as const)
    assert.equal(detailOf(refused), sentence)
})

test('a body that names nothing, a duplicate or something else is rejected', async () => {
  const { policyId } = await calls.newPolicy()
  const item = { kind: 'policy', id: policyId, version: '1' }
  for (const body of [
    {},
    { items: [] },
    { items: [item, { ...item, version: null }] },
    { items: [{ ...item, version: 1 }] },
    { items: [{ ...item, version: '0' }] },
    { items: [{ ...item, version: '1.0' }] },
    { items: [{ ...item, version: 'newest' }] },
    { items: [{ kind: 'policy', id: policyId }] },
    { items: [{ ...item, kind: 'flag' }] },
    { items: [{ ...item, id: 'a\0b' }] },
    { items: [item], environmentId: service.environmentId },
    { items: [item], note: 'a\0b' },
    { items: Array.from({ length: 1001 }, (_, index) => ({ ...item, id: `p${index}` })) },
  ]) {
    const answer = await service.operator(pathOf(), { body })
    assert.deepEqual(refusalOf(answer), [400, 'invalid_request'], JSON.stringify(body).slice(0, 100))
  }
})

test('the changes of an environment are listed, all or of one item, page by page', async () => {
  const { policyId } = await calls.newPolicy()
  await calls.deploy([['policy', policyId, '1']])
  await calls.deploy([['policy', policyId, null]])
  const ofItem = await changes(`?kind=policy&id=${policyId}`)
  assert.deepEqual(
    ofItem.items.map(({ from, to }) => [from, to]),
    [
      ['1', null],
      [null, '1'],
    ],
  )
  const walk = async (limit: number) => {
    const seen: string[] = []
    let cursor: string | null = null
    do {
      const page = await changes(`?limit=${limit}${cursor === null ? '' : `&cursor=${cursor}`}`)
      seen.push(...page.items.map(({ publication, kind, id }) => `${publication} ${kind} ${id}`))
      cursor = page.nextCursor
    } while (cursor !== null)
    return seen
  }
  assert.deepEqual(await walk(1), await walk(200))
  const { nextCursor } = await changes('?limit=1')
  for (const query of [`?cursor=${nextCursor}&kind=policy`, `?cursor=${nextCursor}x`]) {
    assert.deepEqual(refusalOf(await service.operator(`${pathOf()}/changes${query}`)), [400, 'invalid_cursor'])
  }
  const foreign = `${pathOf(calls.staging)}/changes?cursor=${nextCursor}`
  assert.deepEqual(refusalOf(await service.operator(foreign)), [400, 'invalid_cursor'])
  assert.deepEqual(refusalOf(await service.operator(`${pathOf()}/changes?id=x`)), [400, 'invalid_request'])
  assert.deepEqual((await changes('?kind=policy&id=%00')).items, [])
  const page = replyOf('listDeployments', await service.operator(`${pathOf()}?limit=1`))
  const rest = replyOf('listDeployments', await service.operator(`${pathOf()}?cursor=${page.nextCursor}`))
  assert.deepEqual(
    [...page.items, ...rest.items].map(({ kind, id, version }) => `${kind} ${id} ${version}`),
    await list(),
  )
})

test('concurrent publications leave a configuration that matches what is deployed', async () => {
  const policy = await calls.newPolicy()
  for (let version = 2; version <= 4; version++) await calls.pushPolicy(policy.policyId, `tool.name == "${version}"`)
  const answers = await Promise.all(
    ['1', '2', '3', '4', null, '2'].map((version) => calls.deploy([['policy', policy.policyId, version]])),
  )
  for (const { status } of answers) assert.equal(status, 200)
  const { body } = await calls.load()
  const served = [
    ...body.policies.map(({ policyId, version }) => `policy ${policyId} ${version}`),
    ...body.prompts.map(({ promptId, version }) => `prompt ${promptId} ${version}`),
  ]
  assert.deepEqual(served.toSorted(), (await list()).toSorted())
})

test('every change is audited with its content, and a publication without a change is not', async () => {
  const policy = await calls.newPolicy()
  const prompt = await calls.newPrompt()
  await calls.pushPolicy(policy.policyId, 'true')
  await calls.pushPolicy(policy.policyId, 'true')
  await calls.pushPrompt(prompt.promptId, 'two')
  const deploy = (version: string) => calls.deploy([['policy', policy.policyId, version]], calls.staging)
  for (const version of ['1', '2', '2']) await deploy(version)
  await calls.rollBack([['policy', policy.policyId]], calls.staging)
  await calls.promote({ from: calls.staging, items: [{ kind: 'policy', id: policy.policyId }] })
  const prompted = { kind: 'prompt', id: prompt.promptId } as const
  await calls.deploy([['prompt', prompt.promptId, '2']], calls.staging)
  await calls.promote({ from: calls.staging, items: [prompted] })
  await calls.deploy([['prompt', prompt.promptId, null]])
  const entries = (await audited()).slice(0, 11).toReversed()
  assert.deepEqual(
    entries.map(({ action, target, environmentId }) => [action, target.id, environmentId]),
    [
      ['policy.create', policy.policyId, null],
      ['prompt.create', prompt.promptId, null],
      ['policy.write_version', policy.policyId, null],
      ['prompt.write_version', prompt.promptId, null],
      ['policy.deploy', policy.policyId, calls.staging],
      ['policy.deploy', policy.policyId, calls.staging],
      ['policy.roll_back', policy.policyId, calls.staging],
      ['policy.promote', policy.policyId, service.environmentId],
      ['prompt.deploy', prompt.promptId, calls.staging],
      ['prompt.promote', prompt.promptId, service.environmentId],
      ['prompt.undeploy', prompt.promptId, service.environmentId],
    ],
  )
  const { publication: _p, revision: _r, ...detail } = entries[6]?.detail ?? {}
  assert.deepEqual(detail, { name: policy.policyId, from: 2, to: 1, note: null })
  assert.equal(entries[7]?.detail['source'], calls.staging)
  assert.ok(!JSON.stringify(entries).includes('Be kind'), 'no content')
})

test('a version of a prompt is deployed to a share of the sessions; the ETag changes with it', async () => {
  const { promptId: id, name } = await calls.newPrompt()
  await calls.pushPrompt(id, 'Second')
  const deploy = (item: object) => service.operator(pathOf(), { body: { items: [{ kind: 'prompt', id, ...item }] } })
  await deploy({ version: '1' })
  const read = async () => {
    const { headers, body } = await calls.load()
    return { tag: headers.get('etag') ?? '', prompt: body.prompts.find(({ promptId }) => promptId === id) }
  }
  const before = await read()
  const { changes } = replyOf('deploy', await deploy({ version: '2', share: 10 }))
  assert.deepEqual(changes, [{ kind: 'prompt', id, name, from: '1', to: '1', share: { version: '2', percent: 10 } }])
  const shared = await read()
  assert.equal(shared.prompt?.share?.content, 'Second')
  assert.notEqual(shared.tag, before.tag)
  const ask = async (tag: string) => (await calls.load({ 'if-none-match': tag })).status
  assert.deepEqual([await ask(before.tag), await ask(shared.tag)], [200, 304])
  const row = replyOf('listDeployments', await service.operator(pathOf())).items.find((one) => one.id === id)
  const { startedAt, ...share } = row?.share ?? {}
  assert.deepEqual([row?.version, share], ['1', { version: '2', percent: 10, startedBy: 'first token' }])
  assert.ok(startedAt)
  for (const [item, status, detail] of [
    [{ version: '1', share: 10 }, 409, /has this version in force already/],
    [{ version: null, share: 10 }, 400, /./],
    [{ version: '2', share: 100 }, 400, /./],
    [{ version: '2', share: 1.5 }, 400, /./],
    [{ version: '3', share: 10 }, 404, /with version 3/],
    [{ kind: 'policy', version: '1', share: 10 }, 400, /./],
  ] as const) {
    const refused = await deploy(item)
    assert.equal(refused.status, status, JSON.stringify(item))
    assert.match(refused.text, detail)
  }
  assert.deepEqual((await read()).prompt, shared.prompt)
  await deploy({ version: '2', share: 0 })
  assert.deepEqual(await read(), before)
})
