import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { operatorClient } from '../src/engine/operator-client.ts'
import { carryOut, readPresent } from '../src/policies/apply/carry-out.ts'
import { planOf } from '../src/policies/apply/plan.ts'
import { manifestOf } from '../src/policies/apply/read-manifest.ts'
import { findWorkspace } from '../src/tenants/tenants.ts'
import { OPERATOR_TOKEN, startServer, type TestServer } from './tacho.ts'

let server: TestServer
before(async () => {
  server = await startServer()
  for (const name of ['staging', 'production']) {
    const { code } = await server.tacho(['environments', 'create', name])
    assert.equal(code, 0)
  }
})
after(() => server.stop())

const write = (file: string, text: string) => {
  const target = path.join(server.directory, file)
  mkdirSync(path.dirname(target), { recursive: true })
  writeFileSync(target, text)
}
const apply = (...args: string[]) => server.tacho(['apply', '-f', path.join(server.directory, 'tacho.yaml'), ...args])
const json = async <Body>(...args: string[]): Promise<Body> => {
  const { stdout } = await server.tacho([...args, '--json'])
  return JSON.parse(stdout) as Body
}
const inForce = async (noun: 'prompts' | 'policies') => {
  const { items } = await json<{ items: { inForce: { environment: string; version: string }[] }[] }>(noun, 'list')
  return items.map((item) =>
    item.inForce
      .map(({ environment, version }) => `${environment} ${version}`)
      .sort()
      .join(),
  )
}

const POLICIES = `policies:
  refunds:
    condition: tool.name == "refund"
    severity: HIGH
    action: REQUIRE_APPROVAL
`

test('apply does what its plan says; applying again changes nothing', async () => {
  write('prompts/greeting.md', 'Be kind.\r\n\tBye. 🙂\n')
  write(
    'tacho.yaml',
    `prompts: { greeting: { file: prompts/greeting.md } }\n${POLICIES}environments:
  staging: { prompts: [greeting], policies: [refunds] }\n  production: { policies: [refunds] }\n`,
  )
  const dry = await apply('--dry-run')
  assert.equal(dry.code, 3)
  assert.match(dry.stdout, /\+ prompt greeting: create version 1\n/)
  assert.match(dry.stdout, /Environment production\n {2}\+ policy refunds: deploy version 1\n/)
  assert.match(dry.stdout, /Plan: 2 created, 3 deployed\.\n$/)
  assert.deepEqual(await inForce('policies'), [], 'a dry run changes nothing')

  const unasked = await apply()
  assert.deepEqual([unasked.code, unasked.stderr], [3, 'Nothing was changed; add --yes to apply.\n'])
  assert.deepEqual(await inForce('policies'), [], 'nothing changes without --yes or a confirmation')

  const applied = await apply('--yes', '--note', 'Release 7')
  assert.deepEqual([applied.code, applied.stderr], [0, ''])
  assert.deepEqual(await inForce('policies'), ['production 1,staging 1'])
  assert.deepEqual(await inForce('prompts'), ['staging 1'])
  const shown = await server.tacho(['prompts', 'show', 'greeting'])
  assert.equal(shown.stdout, 'Be kind.\r\n\tBye. 🙂\n', 'byte for byte')

  for (const args of [['--yes'], ['--dry-run'], []]) {
    const again = await apply(...args)
    assert.deepEqual([again.code, again.stdout], [0, 'Nothing to change: the server matches the file.\n'], args.join())
  }
})

test('file changes become new versions and deployments', async () => {
  write(
    'tacho.yaml',
    `prompts: { greeting: { content: Bye } }\n${POLICIES.replace('HIGH', 'LOW')}environments:
  staging: { prompts: [], policies: [refunds] }\n  production: { prompts: [greeting], policies: { refunds: 1 } }\n`,
  )
  const plan = await json<{ writes: object[]; deployments: { environment: string; changes: object[] }[] }>(
    'apply',
    '-f',
    path.join(server.directory, 'tacho.yaml'),
    '--dry-run',
    '--prune',
  )
  assert.deepEqual(plan.writes, [
    { kind: 'prompt', name: 'greeting', version: '2', changed: ['content'] },
    { kind: 'policy', name: 'refunds', version: '2', changed: ['severity'] },
  ])
  assert.deepEqual(
    plan.deployments.map(({ environment, changes }) => [environment, changes.length]),
    [
      ['staging', 2],
      ['production', 1],
    ],
  )
  assert.equal((await apply('--yes', '--prune')).code, 0)
  assert.deepEqual(await inForce('policies'), ['production 1,staging 2'])
  assert.deepEqual(await inForce('prompts'), ['production 2'])
  assert.equal((await apply('--dry-run', '--prune')).code, 0)
})

test('apply leaves everything that the file does not mention unchanged', async () => {
  write('tacho.yaml', `${POLICIES.replace('HIGH', 'LOW')}environments:\n  staging: { policies: [refunds] }\n`)
  const { code, stdout } = await apply('--dry-run')
  assert.deepEqual([code, stdout], [0, 'Nothing to change: the server matches the file.\n'])
})

test('an invalid file changes nothing and is reported with line and field', async () => {
  write('tacho.yaml', `${POLICIES.replace('HIGH', 'FATAL')}environments:\n  staging: { policies: [] }\n`)
  const wrong = await apply('--yes')
  assert.equal(wrong.code, 2)
  assert.match(wrong.stderr, /tacho\.yaml:4:5: policies\.refunds\.severity: must be one of LOW, /)
  write(
    'tacho.yaml',
    `${POLICIES}environments:\n  nowhere: { policies: [] }\n  staging: { policies: { refunds: 99 } }\n`,
  )
  const unknown = await apply('--yes')
  assert.equal(unknown.code, 2)
  assert.match(
    unknown.stderr,
    /tacho\.yaml:7:3: environments\.nowhere: this environment does not exist; create it with `tacho environments create "nowhere"/,
  )
  assert.match(unknown.stderr, /tacho\.yaml:8:26: policy refunds has no version 99/)
  assert.deepEqual(await inForce('policies'), ['production 1,staging 2'])
})

test('an interrupted apply can be repeated', async () => {
  // The version already exists, as after a failed publication.
  write('refunds.cel', 'tool.name == "refund" && true\n')
  const pushed = await server.tacho([
    'policies',
    'push',
    'refunds',
    '--file',
    path.join(server.directory, 'refunds.cel'),
  ])
  assert.equal(pushed.code, 0)
  write(
    'tacho.yaml',
    `${POLICIES.replace('HIGH', 'LOW').replace('== "refund"', '== "refund" && true')}environments:\n  staging: { policies: [refunds] }\n`,
  )
  const { code, stdout } = await apply('--yes')
  assert.equal(code, 0)
  assert.match(stdout, /~ policy refunds: version 2 -> 3\n\nPlan: 1 deployed\.\nDone\.\n$/)
})

test('what another person deployed after the plan was made is not overwritten', async () => {
  write(
    'tacho.yaml',
    `${POLICIES.replace('HIGH', 'CRITICAL')}environments:\n  staging: { policies: [refunds] }\n  production: { policies: [] }\n`,
  )
  const before = await inForce('policies')
  const manifest = await manifestOf(path.join(server.directory, 'tacho.yaml'))
  const client = operatorClient(server.url, OPERATOR_TOKEN)
  const workspace = await findWorkspace(client, undefined)
  const present = await readPresent(client, workspace, manifest)
  const planned = planOf(manifest, present, { prune: true })
  assert.ok(planned.ok)
  assert.deepEqual(before, ['production 1,staging 3'])
  await server.text('policies', 'deploy', 'refunds@1', '--environment', 'default/staging')
  await assert.rejects(carryOut(client, workspace.id, manifest, present, planned.plan, null), {
    name: 'Stop',
    message:
      'Environment staging is no longer as in the plan: version 1 of policy refunds is in force, not version 3. That deployment was refused: apply again for a new plan.',
  })
  assert.deepEqual(await inForce('policies'), ['production 1,staging 1'])
  assert.equal((await apply('--yes')).code, 0)
  assert.deepEqual(await inForce('policies'), ['production 1,staging 4'])
})

test('two files share an environment: only --prune undeploys what another one deployed, and the plan says so', async () => {
  const [theirs, ours] = ['theirs', 'ours'].map(
    (name) => `policies:
  ${name}: { condition: tool.name == "${name}", severity: LOW, action: WARN }
environments: { shared: { policies: [${name}] } }
`,
  )
  assert.equal((await server.tacho(['environments', 'create', 'shared'])).code, 0)
  for (const text of [theirs, ours]) {
    write('tacho.yaml', text ?? '')
    assert.equal((await apply('--yes')).code, 0)
  }
  const inShared = async () => {
    const { items } = await json<{ items: { policyId: string; inForce: { environment: string }[] }[] }>(
      'policies',
      'list',
    )
    return items.filter(({ inForce }) => inForce.some(({ environment }) => environment === 'shared'))
  }
  assert.deepEqual((await inShared()).map(({ policyId }) => policyId).sort(), ['ours', 'theirs'])
  const same = await apply('--dry-run')
  assert.equal(same.code, 0)
  assert.match(
    same.stdout,
    /not in this file. These stay; --prune undeploys them:\n {4}shared: policy theirs, version 1\n$/,
  )
  const pruned = await apply('--prune')
  assert.equal(pruned.code, 3)
  assert.match(pruned.stdout, /Environment shared\n {2}- policy theirs: undeploy \(was version 1\)\n/)
  assert.equal((await apply('--prune', '--yes')).code, 0)
  assert.deepEqual(
    (await inShared()).map(({ policyId }) => policyId),
    ['ours'],
  )
})

test('a policy of the file has a message, which is part of its description on the server', async () => {
  const SPEAKS = path.join(server.directory, 'speaks.yaml')
  const speaking = (more: string) =>
    `policies:\n  speaks: { condition: 'true', severity: LOW, action: WARN, ${more} }\n`
  const environments = 'environments:\n  staging: { policies: [speaks] }\n'
  write('speaks.yaml', speaking('description: Refunds., message: ask ada') + environments)
  const applied = await apply('-f', SPEAKS, '--yes')
  assert.equal(applied.code, 0, applied.stderr)
  const { stdout } = await server.tacho(['policies', 'show', 'speaks', '--json'])
  assert.equal((JSON.parse(stdout) as { description: string }).description, 'Refunds.\nMessage: ask ada')
  const again = await apply('-f', SPEAKS, '--yes')
  assert.match(again.stdout, /Nothing to change|matches the file/)
  write('speaks.yaml', speaking(String.raw`description: "A\nMessage: b", message: ask ada`) + environments)
  assert.match((await apply('-f', SPEAKS, '--yes')).stderr, /not in both/)
})

test('apply restores what is archived and in the file, and the plan says so', async () => {
  const items = `prompts: { put-away: { content: Hi } }\n${POLICIES.replace('refunds', 'put-away')}`
  write('tacho.yaml', items)
  assert.equal((await apply('--yes')).code, 0)
  for (const noun of ['prompts', 'policies']) {
    const { code, stderr } = await server.tacho([noun, 'archive', 'put-away'])
    assert.equal(code, 0, stderr)
  }
  write('tacho.yaml', `${items}environments:\n  staging: { policies: [put-away] }\n`)
  const dry = await apply('--dry-run')
  assert.equal(dry.code, 3)
  assert.match(dry.stdout, /\+ prompt put-away: restore \(was archived\)\n/)
  assert.match(dry.stdout, /Plan: 2 restored, 1 deployed\.\n/)
  const applied = await apply('--yes')
  assert.deepEqual([applied.code, applied.stderr], [0, ''])
  const again = await apply('--yes')
  assert.match(again.stdout, /^Nothing to change: the server matches the file\.\n/)
})

test('a file gives a version of a prompt to a share of the sessions, once, and not again after somebody ended it', async () => {
  assert.equal((await server.tacho(['environments', 'create', 'sharing'])).code, 0)
  assert.equal((await server.tacho(['prompts', 'create', 'split', '--content', 'One.'])).code, 0)
  const file = (versions: string) =>
    write(
      'tacho.yaml',
      `prompts: { split: { content: Two. } }\nenvironments: { sharing: { prompts: { split: ${versions} } } }\n`,
    )
  const shares = async () => {
    const { stdout } = await server.tacho(['prompts', 'list'])
    return /^split .* sharing ([^,]+?) {2,}/m.exec(stdout)?.[1]
  }
  file('{ version: 1, share: { version: newest, percent: 10 } }')
  const first = await apply('--yes')
  assert.equal(first.code, 0, first.stderr)
  assert.match(first.stdout, /\+ prompt split: deploy version 1\n {2}~ prompt split: version 2 for 10 % of sessions\n/)
  assert.equal(await shares(), '1 (10 %: 2)')
  assert.match((await apply('--yes')).stdout, /^Nothing to change/)
  file('{ version: 1, share: { version: 2, percent: 30 } }')
  assert.match((await apply('--yes')).stdout, /Plan: 1 deployed\./)
  assert.equal(await shares(), '1 (30 %: 2)')
  file('1')
  assert.match((await apply('--yes')).stdout, /^Nothing to change/, 'a file that does not say it leaves the share')
  file('{ version: 1, share: { percent: 0 } }')
  assert.match((await apply('--yes')).stdout, /- prompt split: end the share of version 2/)
  assert.equal(await shares(), '1')
  file('{ version: 1, share: { version: 2, percent: 30 } }')
  const again = await apply('--yes')
  assert.match(
    again.stdout,
    /^Nothing to change.*\nThe share of version 2 of prompt split in sharing was ended by .*; it does not start again\./,
  )
  file('2')
  assert.equal((await apply('--yes')).code, 0)
  assert.equal(await shares(), '2')
  for (const [versions, fault] of [
    ['{ version: 2, share: { version: 2, percent: 10 } }', /the share needs another version than the one in force, 2/],
    ['{ version: 1, share: { version: 2, percent: 100 } }', /needs percent: a whole number from 0 to 99/],
    ['{ version: 1, share: { version: 2 } }', /needs percent/],
    ['{ share: { version: 2, percent: 10 } }', /needs version/],
    ['{ version: 1, share: { version: 9, percent: 10 } }', /has no version 9/],
  ] as const) {
    file(versions)
    const { code, stderr } = await apply('--yes')
    assert.equal(code, 2, versions)
    assert.match(stderr, fault)
  }
})

test('apply sets the labels of tools in the environments of the file, and leaves those of other tools to other files', async () => {
  const environments = 'environments:\n  staging: { policies: [refunds] }\n'
  const labels = 'labels:\n  - { tool: read_mail, output: [untrusted] }\n  - { tool: "send_*", does: [external] }\n'
  write('tacho.yaml', `${labels}${POLICIES}${environments}`)
  const planned = await apply('--dry-run')
  assert.match(planned.stdout, /\+ rule of read_mail\n.*\+ rule of send_\*/)
  assert.equal((await apply('--yes')).code, 0)
  assert.match((await apply('--dry-run')).stdout, /nothing|up to date|No changes/i)
  write('tacho.yaml', `${POLICIES}${environments}`)
  assert.doesNotMatch((await apply('--dry-run')).stdout, /rule of/)
  write('tacho.yaml', `labels: []\n${POLICIES}${environments}`)
  assert.doesNotMatch((await apply('--dry-run')).stdout, /rule of/)
  assert.match((await apply('--dry-run', '--prune')).stdout, /- rule of read_mail/)
  // Applying a team's file keeps a label rule that a company policy reads, and removes the old rule of the team's own tool.
  const team = 'labels:\n  - { tool: lookup, output: [ours] }\n  - { tool: "send_*", does: [external, money] }\n'
  write('tacho.yaml', `${team}${POLICIES}${environments}`)
  const { stdout } = await apply('--dry-run')
  assert.match(stdout, /- rule of send_\*\n.*\+ rule of/)
  assert.doesNotMatch(stdout, /- rule of read_mail/)
  assert.equal((await apply('--yes')).code, 0)
  assert.match((await apply('--dry-run')).stdout, /Nothing to change/)
  // Conditions are checked against the labels in the same file.
  const reads = (label: string) =>
    `policies:\n  l: { condition: '"${label}" in tool.labels', severity: LOW, action: BLOCK }\n`
  const given = `labels:\n  - { tool: publish, does: [public] }\n`
  for (const [label, warning] of [
    ['public', /^$/],
    ['publik', /Warning: l in staging: No rule gives the label publik; did you mean public\?/],
  ] as const) {
    write('tacho.yaml', `${given}${reads(label)}environments:\n  staging: { policies: [l] }\n`)
    assert.match((await apply('--dry-run')).stderr.replace('Nothing was changed.\n', ''), warning)
  }
  write('tacho.yaml', `${labels}${POLICIES}`)
  assert.match((await apply('--dry-run')).stdout, /names no environment: its policies and labels are in force nowhere/)
})
