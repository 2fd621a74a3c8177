import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import path from 'node:path'
import type { ApiKey } from '@tacho/contract/tenants/api-key.ts'
import { after, test } from 'node:test'
import { ended, OPERATOR_TOKEN, runCommand, startServer } from './tacho.ts'

const server = await startServer()
after(() => server.stop())

const { text } = server

test('a workspace token is the only output on stdout, works with its role, and can be revoked', async () => {
  await text('workspaces', 'create', 'acme')
  const line = ['tokens', 'create', '-w', 'acme', '--name', 'ci', '--role', 'viewer', '--expires', '90d']
  const made = await server.tacho(line)
  assert.match(made.stdout, /^tacho-operator_[0-9a-f]{16}_[0-9a-f]{64}\n$/)
  assert.match(made.stderr, /viewer of workspace acme, until 2/)
  const token = made.stdout.trim()
  const asToken = (...args: string[]) => runCommand(args, { ...server.variables, TACHO_OPERATOR_TOKEN: token })
  assert.match((await asToken('whoami')).stdout, /^Operator token ci .*\n {2}viewer of workspace acme\n$/)
  assert.match((await asToken('workspaces', 'list')).stdout, /^acme /m)
  const tooMuch = await asToken('environments', 'create', 'production')
  assert.equal(tooMuch.code, 1)
  assert.match(tooMuch.stderr, /This requires the role admin/)
  const id = token.split('_')[1] ?? ''
  assert.match(await text('tokens', 'list', '-w', 'acme'), new RegExp(`^${id} +ci +viewer +valid until`, 'm'))
  assert.match(await text('tokens', 'revoke', id, '--yes', '-w', 'acme'), /was revoked at/)
  assert.equal((await asToken('whoami')).code, 1)
})

test('a token is rotated, and one that is revoked names what it made, or ends that too', async () => {
  const scope = ['--installation']
  const first = await text('tokens', 'create', ...scope, '--name', 'maker', '--role', 'owner')
  const idOf = (token: string) => token.split('_')[1] ?? ''
  const rotated = await server.tacho(['tokens', 'rotate', idOf(first), '--keep', '1h', '--expires', '90d', ...scope])
  assert.match(rotated.stdout, /^tacho-operator_[0-9a-f]{16}_[0-9a-f]{64}\n$/)
  assert.match(rotated.stderr, new RegExp(`replaces ${idOf(first)}, which stays valid until 2`))
  const next = rotated.stdout.trim()
  const as = (token: string, ...args: string[]) =>
    runCommand(args, { ...server.variables, TACHO_OPERATOR_TOKEN: token })
  for (const token of [first, next]) assert.match((await as(token, 'whoami')).stdout, /^Operator token maker /)
  assert.match(
    await text('tokens', 'list', ...scope),
    new RegExp(`^${idOf(first)} +maker +owner +replaced, valid until`, 'm'),
  )
  const made = (await as(next, 'tokens', 'create', ...scope, '--name', 'made', '--role', 'viewer')).stdout.trim()
  const kept = await text('tokens', 'revoke', idOf(next), '--yes', ...scope)
  assert.match(kept, new RegExp(`was revoked at .*\nStill valid, .*\n  ${idOf(made)}  made  viewer everywhere$`, 'm'))
  assert.equal((await as(made, 'whoami')).code, 0)
  const ended = await text('tokens', 'revoke', idOf(next), '--yes', '--also-made', ...scope)
  assert.match(ended, new RegExp(`Also revoked, .*\n  ${idOf(made)}  `))
  assert.equal((await as(made, 'whoami')).code, 1)
})

test('installation tokens are separate from workspace tokens', async () => {
  const token = await text('tokens', 'create', '--installation', '--name', 'watch', '--role', 'viewer')
  const id = token.split('_')[1] ?? ''
  const { items } = JSON.parse(await text('tokens', 'list', '--installation', '--json')) as { items: { id: string }[] }
  assert.ok(items.some((item) => item.id === id))
  assert.match(await text('tokens', 'revoke', id, '--yes', '--installation'), /was revoked at/)
})

test('the audit log lists changes and can be filtered', async () => {
  await text('environments', 'create', 'staging', '-w', 'acme')
  const list = async (...args: string[]) =>
    JSON.parse(await text('audit', 'list', ...args, '--json')) as { items: { action: string }[]; hasMore: boolean }
  const newest = await list('-w', 'acme', '--limit', '1', '--from', '1h')
  assert.deepEqual([newest.items.length, newest.hasMore], [1, true])
  const made = await list('-w', 'acme', '--target', 'environment', '--all')
  assert.deepEqual(
    made.items.map(({ action }) => action),
    ['environment.create'],
  )
  assert.ok((await list('--installation', '--action', 'workspace.create')).items.length > 0)
  assert.match(await text('audit', 'list', '-w', 'acme'), /first token +127\.0\.0\.1 +staging +environment\.create/)
})

test('people are invited, accept, change role and are removed', async () => {
  const scope = ['-w', 'acme']
  const made = await server.tacho(['operators', 'invite', 'Ann@Example.com', ...scope, '--role', 'owner'])
  assert.equal(made.code, 0, made.stderr)
  assert.match(made.stdout, /^http:\/\/\S+\/invitation#tacho-invitation_[0-9a-f]{16}_[0-9a-f]{64}\n$/)
  assert.match(made.stderr, /ann@example\.com is invited as owner to workspace acme, until 2/)
  assert.match(made.stderr, /\nWarning: This link opens only on the server's own machine \(\S+\)\./)
  assert.match(await text('operators', 'list', ...scope), /^ann@example\.com +owner +invited until/m)
  await accept(made.stdout)
  assert.match(await text('operators', 'list', ...scope), /^ann@example\.com +Ann +owner +no +unknown +[0-9a-f-]{36}$/m)
  const last = await server.tacho(['operators', 'role', 'ann@example.com', 'viewer', ...scope])
  assert.equal(last.code, 1)
  assert.match(last.stderr, /last owner.*\(conflict/)

  await accept(await text('operators', 'invite', 'bob@example.com', ...scope, '--role', 'viewer'))
  assert.match(await text('operators', 'role', 'bob@example.com', 'admin', ...scope), /is admin in workspace acme/)
  assert.match(
    await text('operators', 'remove', 'BOB@example.com', '--yes', ...scope),
    /was removed from workspace acme/,
  )
  assert.match(await text('operators', 'role', 'bob@example.com', 'viewer', '--installation'), /viewer in the install/)
  assert.match(await text('operators', 'role', 'bob@example.com', 'none', '--installation'), /without a role/)
  assert.match(await text('operators', 'remove', 'bob@example.com', '--yes', '--installation'), /account .* was ended/)

  await text('operators', 'invite', 'eve@example.com', '--installation', '--role', 'owner')
  assert.match(await text('operators', 'uninvite', 'eve@example.com', '--installation'), /was revoked/)
  for (const args of [
    ['operators', 'role', 'nobody@example.com', 'viewer', ...scope],
    ['operators', 'role', 'ann@example.com', 'root', ...scope],
    ['operators', 'uninvite', 'eve@example.com', '--installation'],
  ]) {
    assert.equal((await server.tacho(args)).code, 2, args.join(' '))
  }
})

async function accept(link: string): Promise<void> {
  const token = link.trim().split('#')[1]
  const reply = await fetch(`${server.url}/operator/v1/invitations/accept`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token, name: 'Ann', password: 'correct horse battery staple' }),
  })
  assert.equal(reply.status, 200, await reply.text())
}

test('wrong usage fails before any request', async () => {
  for (const args of [
    ['tokens', 'create', '--name', 'x', '--role', 'root'],
    ['tokens', 'list', '-w', 'acme', '--installation'],
    ['audit', 'list', '-w', 'acme', '--from', 'yesterday'],
  ]) {
    assert.equal((await server.tacho(args)).code, 2, args.join(' '))
  }
})

test('after login and use, commands need no variables and no flags', async () => {
  const config = { XDG_CONFIG_HOME: path.join(server.directory, 'config') }
  const tacho = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCommand(args, config)
    assert.equal(code, 0, stderr)
    return stdout
  }
  await text('workspaces', 'create', 'globex')
  await text('environments', 'create', 'production', '--workspace', 'globex')
  const login = ['login', '--url', server.url]
  const refused = await runCommand(login, config, 'tacho-operator_00000000_wrong\n')
  assert.deepEqual([refused.code, refused.stdout], [1, ''])
  assert.match(refused.stderr, /unauthenticated/)
  const { code, stdout, stderr } = await runCommand(login, config, `${OPERATOR_TOKEN}\n`)
  assert.equal(code, 0, stderr)
  assert.match(stdout, /^Signed in to http:\/\/127.* Profile: default\.\n$/)
  assert.match((await runCommand(['runs', 'list'], config)).stderr, /More than one environment exists/)
  await tacho('use', 'globex/production')
  assert.match(await tacho('use'), /environment globex\/production/)
  assert.equal(await tacho('runs', 'list'), '')
  assert.match((await runCommand(['policies', 'list'], config)).stderr, /^No policies\. `tacho policies create`/)
  const elsewhere = await runCommand(['keys', 'list'], { ...config, TACHO_ENVIRONMENT: 'globex/nowhere' })
  assert.match(elsewhere.stderr, /Unknown environment "globex\/nowhere"/)
  assert.match(await tacho('api', '/environments/{environmentId}/runs?limit=1'), /^\{"items":\[\]/)
  await tacho('logout')
  assert.equal((await runCommand(['runs', 'list'], config)).code, 2)
})

test('a key is changed without a new secret, and rotated with both valid for a time', async () => {
  const where = ['-e', 'default/development']
  const made = await text('keys', 'create', '--name', 'ci', '--scopes', 'events:write,usage:read', ...where)
  const id = made.split('_')[1] ?? ''
  assert.match(
    await text('keys', 'change', id, '--scopes', 'usage:read', '--rate', '5', '--expires', '90d', ...where),
    /usage:read, valid/,
  )
  await text('keys', 'change', id, '--allow-from', '192.0.2.0/24,2001:db8::/32', ...where)
  const limited = JSON.parse(await text('keys', 'change', id, '--name', 'ci', '--json', ...where)) as ApiKey
  assert.deepEqual([limited.requestsPerSecond, limited.allowedAddresses], [5, ['192.0.2.0/24', '2001:db8::/32']])
  const open = ['keys', 'change', id, '--rate', 'default', '--allow-from', 'anywhere', '--json', ...where]
  const opened = JSON.parse(await text(...open)) as ApiKey
  assert.deepEqual([opened.requestsPerSecond, opened.allowedAddresses], [null, null])
  const wider = await server.tacho(['keys', 'change', id, '--scopes', 'all', ...where])
  assert.deepEqual([wider.code, wider.stdout], [1, ''])
  assert.equal((await server.tacho(['keys', 'change', id, ...where])).code, 2)
  const rotated = await text('keys', 'rotate', id, '--keep', '7d', ...where)
  for (const key of [made, rotated]) {
    const reply = await fetch(`${server.url}/openapi/v1/runs`, { headers: { 'x-api-key': key.trim() } })
    assert.equal(reply.status, 200)
  }
})

test('what was kept for days can be kept forever again', async () => {
  const set = async (days: string) => {
    const retention = await text(
      'retention',
      'set',
      '--runs',
      days,
      '--audit',
      'forever',
      '--yes',
      '--json',
      '-e',
      'default/development',
    )
    return (JSON.parse(retention) as { settings: { runDays: number | null } }).settings.runDays
  }
  assert.deepEqual([await set('30d'), await set('forever')], [30, null])
})

test('api calls any endpoint of the operator API, and nothing else', async () => {
  const made = await server.tacho(['api', '/workspaces', '-d', '{"name": "initech"}'])
  assert.equal((JSON.parse(made.stdout) as { name: string }).name, 'initech')
  const refused = await server.tacho(['api', '/workspaces/nothing'])
  assert.deepEqual([refused.code, (JSON.parse(refused.stdout) as { status: number }).status], [1, 404])
  for (const route of [
    'workspaces',
    '/../../openapi/v1/runs',
    '/%2e%2e/%2e%2e/metrics',
    '//evil.example/operator/v1/me',
  ]) {
    const { code, stdout } = await server.tacho(['api', route])
    assert.ok(code === 2 || stdout.includes('"status":404'), `${route}: ${stdout}`)
  }
})

test('the shell learns what the last word can become', async () => {
  const complete = async (...words: string[]) => (await runCommand(['complete', '--', ...words])).stdout.split('\n')
  assert.deepEqual(await complete('work'), ['workspaces', ''])
  assert.deepEqual(await complete('runs', 'list', '--se'), ['--search', '--session', ''])
  assert.deepEqual(await complete('completion', ''), ['bash', 'zsh', 'fish', ''])
  assert.deepEqual(await complete('constructor', ''), await complete(''))
  const { stdout } = await runCommand(['completion', 'bash'])
  const shell = `${stdout}\ntacho() { printf 'one\\ntwo\\n'; }\nCOMP_WORDS=(tacho r) COMP_CWORD=1 _tacho; echo "\${COMPREPLY[*]}"`
  const bash = await ended(spawn('bash', ['-c', shell]))
  assert.deepEqual([bash.stdout, bash.stderr], ['one two\n', ''])
})
