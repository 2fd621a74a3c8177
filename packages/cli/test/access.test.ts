import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { runTacho, startServer } from './tacho.ts'

const server = await startServer()
after(() => server.stop())

async function text(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await server.tacho(args)
  assert.equal(code, 0, stderr)
  return stdout
}

test('a workspace token is the only output on stdout, works with its role, and can be revoked', async () => {
  await text('workspaces', 'create', 'acme')
  const line = ['tokens', 'create', '-w', 'acme', '--name', 'ci', '--role', 'viewer', '--expires', '90d']
  const made = await server.tacho(line)
  assert.match(made.stdout, /^tacho-operator_[0-9a-f]{16}_[0-9a-f]{64}\n$/)
  assert.match(made.stderr, /viewer of workspace acme, until 2/)
  const token = made.stdout.trim()
  const asToken = (...args: string[]) => runTacho(args, { ...server.variables, TACHO_OPERATOR_TOKEN: token })
  assert.match((await asToken('whoami')).stdout, /^Operator token ci .*\n {2}viewer of workspace acme\n$/)
  assert.match((await asToken('workspaces', 'list')).stdout, /^acme /m)
  const tooMuch = await asToken('environments', 'create', 'production')
  assert.equal(tooMuch.code, 1)
  assert.match(tooMuch.stderr, /This requires the role admin/)
  const id = token.split('_')[1] ?? ''
  assert.match(await text('tokens', 'list', '-w', 'acme'), new RegExp(`^${id} +ci +viewer +valid until`, 'm'))
  assert.match(await text('tokens', 'revoke', id, '-w', 'acme'), /was revoked at/)
  assert.equal((await asToken('whoami')).code, 1)
})

test('installation tokens are separate from workspace tokens', async () => {
  const token = await text('tokens', 'create', '--installation', '--name', 'watch', '--role', 'viewer')
  const id = token.split('_')[1] ?? ''
  const { items } = JSON.parse(await text('tokens', 'list', '--installation', '--json')) as { items: { id: string }[] }
  assert.ok(items.some((item) => item.id === id))
  assert.match(await text('tokens', 'revoke', id, '--installation'), /was revoked at/)
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
  assert.match(await text('audit', 'list', '-w', 'acme'), /first token \(token\) +environment\.create/)
})

test('people are invited, accept, change role and are removed', async () => {
  const scope = ['-w', 'acme']
  const made = await server.tacho(['operators', 'invite', 'Ann@Example.com', ...scope, '--role', 'owner'])
  assert.equal(made.code, 0, made.stderr)
  assert.match(made.stdout, /^http:\/\/\S+\/invitation#tacho-invitation_[0-9a-f]{16}_[0-9a-f]{64}\n$/)
  assert.match(made.stderr, /ann@example\.com is invited as owner to workspace acme, until 2/)
  assert.match(await text('operators', 'list', ...scope), /^ann@example\.com +owner +invited until/m)
  await accept(made.stdout)
  assert.match(await text('operators', 'list', ...scope), /^ann@example\.com +Ann +owner +no +unknown +[0-9a-f-]{36}$/m)
  const last = await server.tacho(['operators', 'role', 'ann@example.com', 'viewer', ...scope])
  assert.equal(last.code, 1)
  assert.match(last.stderr, /last owner.*\(conflict/)

  await accept(await text('operators', 'invite', 'bob@example.com', ...scope, '--role', 'viewer'))
  assert.match(await text('operators', 'role', 'bob@example.com', 'admin', ...scope), /is admin in workspace acme/)
  assert.match(await text('operators', 'remove', 'BOB@example.com', ...scope), /was removed from workspace acme/)
  assert.match(await text('operators', 'role', 'bob@example.com', 'viewer', '--installation'), /viewer in the install/)
  assert.match(await text('operators', 'role', 'bob@example.com', 'none', '--installation'), /without a role/)
  assert.match(await text('operators', 'remove', 'bob@example.com', '--installation'), /account .* was ended/)

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
