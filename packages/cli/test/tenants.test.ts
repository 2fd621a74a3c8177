/** Workspaces, environments, keys and what belongs to a workspace. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, test } from 'node:test'
import Database from 'better-sqlite3'
import { OPERATOR_TOKEN, runCommand, startServer } from './tacho.ts'

const server = await startServer()
after(() => server.stop())
const { json, text, refused } = server
const WHERE = ['--environment', 'default/development']

test('workspaces and environments are created and listed; --if-not-exists accepts existing ones', async () => {
  assert.match(await text('workspaces', 'create', 'acme'), /^Workspace acme created \(/)
  const again = await refused('workspaces', 'create', 'acme')
  assert.equal(again.code, 1)
  assert.match(again.stderr, /\(conflict, request [0-9a-f-]{36}\)/)
  const workspace = await json<{ id: string }>('workspaces', 'create', 'acme', '--if-not-exists')
  const { items } = await json<{ items: { id: string; name: string }[] }>('workspaces', 'list')
  assert.equal(items.find(({ name }) => name === 'acme')?.id, workspace.id)

  assert.match(await text('environments', 'create', 'prod-eu', '-w', 'acme'), /^Environment acme\/prod-eu created/)
  assert.match(await text('environments', 'create', 'prod-eu', '-w', workspace.id, '--if-not-exists'), /already exists/)
  assert.match(await text('environments', 'list'), /^acme\/prod-eu +[0-9a-f-]{36}/m)
  const slash = await server.tacho(['environments', 'create', 'prod/eu', '-w', 'acme'])
  assert.match(slash.stderr, /name must not contain a slash/)
  const likeId = await server.tacho(['workspaces', 'create', workspace.id])
  assert.match(likeId.stderr, /name must not have the form of an id/)
  await json('keys', 'list', '--environment', 'acme/prod-eu')
})

test('workspaces and environments are renamed, archived, restored, and an archived environment is deleted', async () => {
  await text('workspaces', 'create', 'life')
  await text('environments', 'create', 'old', '-w', 'life')
  assert.match(
    await text('environments', 'rename', 'life/old', 'staging'),
    /^Environment life\/old is now called staging/,
  )
  const early = await refused('environments', 'delete', 'life/staging', '--yes')
  assert.match(early.stderr, /archive it first/)
  assert.match(await text('environments', 'archive', 'life/staging'), /^Environment life\/staging is archived/)
  assert.doesNotMatch(await text('environments', 'list'), /life\/staging/)
  // An archived environment can still be named, to read it and to erase in it.
  await text('runs', 'list', '-e', 'life/staging')
  const erased = await server.tacho(['erase', 'session', 's', '--yes', '-e', 'life/staging'])
  assert.match(erased.stdout + erased.stderr, /\(session\) is effective since/)
  // An erasure that does not search says what it cannot find.
  const ofUser = ['erase', 'user', 'vera', '--yes', '-e', 'life/staging']
  assert.match((await server.tacho(ofUser)).stdout, /--field userId/)
  assert.doesNotMatch((await server.tacho([...ofUser, '--field', 'userId'])).stdout, /--field/)
  const entry = /^\S+ +first token +127\.0\.0\.1 +staging +environment\.archive /m
  assert.match(await text('audit', 'list', '-w', 'life'), entry, 'an archived one by its name')
  const unasked = await server.tacho(['environments', 'delete', 'life/staging'])
  assert.deepEqual([unasked.code, unasked.stderr], [1, 'Nothing was changed; add --yes to delete the environment.\n'])
  assert.match(await text('environments', 'delete', 'life/staging', '--yes'), /is deleted at 2.*\nTo keep it: tacho /)
  assert.match(await text('environments', 'list', '--archived'), /^life\/staging +\S+ +\S+ +2\S+ +2\S+$/m)
  assert.match(await text('environments', 'restore', 'life/staging'), /is in use again/)
  assert.match(await text('environments', 'list', '--archived'), /^life\/staging +\S+ +\S+ +no +never$/m)
  assert.match(await text('workspaces', 'rename', 'life', 'after'), /^Workspace life is now called after/)
  await text('workspaces', 'archive', 'after')
  assert.doesNotMatch(await text('workspaces', 'list'), /after/)
  assert.match(await text('workspaces', 'list', '--archived'), /^after +\S+ +\S+ +2/m)
  await text('workspaces', 'restore', 'after')
  assert.match(await text('workspaces', 'list'), /^after /m)
})

test('archived prompts and policies are listed on demand', async () => {
  await text('workspaces', 'create', 'shelf')
  for (const [noun, file, rest] of [
    ['prompts', 'old.md', []],
    ['policies', 'old.cel', ['--severity', 'LOW', '--action', 'WARN']],
  ] as const) {
    const source = path.join(server.dataDir, file)
    writeFileSync(source, 'true')
    await text(noun, 'create', 'old', '--file', source, '-w', 'shelf', ...rest)
    await text(noun, 'archive', 'old', '-w', 'shelf')
    assert.doesNotMatch(await text(noun, 'list', '-w', 'shelf'), /^old/m)
    assert.match(await text(noun, 'list', '-w', 'shelf', '--archived'), /^old +\S+ +archived/m)
  }
})

test('with several workspaces, one must be given', async () => {
  await text('workspaces', 'create', 'other', '--if-not-exists')
  const which = await refused('environments', 'create', 'x')
  assert.equal(which.code, 2)
  assert.match(which.stderr, /More than one workspace exists\. Set --workspace: choose from "default"/)
  const unknown = await refused('runs', 'list', '--environment', 'default/nowhere')
  assert.equal(unknown.code, 2)
  assert.match(unknown.stderr, /Unknown environment "default\/nowhere"/)
})

test('a name that means two tenants chooses neither', async () => {
  await text('workspaces', 'create', 'globex')
  await text('workspaces', 'create', 'globex-eu')
  await text('environments', 'create', 'eu-production', '-w', 'globex')
  await text('environments', 'create', 'production', '-w', 'globex-eu')
  assert.deepEqual((await json<{ items: [] }>('keys', 'list', '-e', 'eu-production')).items, [])
  await text('environments', 'create', 'twice', '-w', 'globex')
  await text('environments', 'create', 'twice', '-w', 'globex-eu')
  const short = await refused('keys', 'list', '-e', 'twice')
  assert.match(
    short.stderr,
    /"twice" means more than one environment\. Use the whole name: "globex\/twice", "globex-eu\/twice"/,
  )
  const { id: victim } = await json<{ id: string }>('workspaces', 'create', 'initech')
  // The API refuses such names, but a store may already contain them.
  const store = new Database(path.join(server.dataDir, 'tacho.db'))
  const ids = store.prepare("SELECT id FROM environments WHERE name IN ('eu-production', 'production')").pluck().all()
  store.exec(`UPDATE workspaces SET name = 'globex/eu' WHERE name = 'globex-eu';
    UPDATE environments SET name = 'eu/production' WHERE name = 'eu-production';
    UPDATE workspaces SET name = '${victim}' WHERE name = 'other'`)
  store.close()

  const made = await refused('keys', 'create', '-e', 'globex/eu/production', '--name', 'k', '--scopes', 'events:write')
  assert.equal(made.code, 2)
  assert.match(made.stderr, /"globex\/eu\/production" means more than one environment\. Use an id: /)
  assert.ok(ids.every((id) => made.stderr.includes(String(id))))
  for (const id of ids) assert.deepEqual((await json<{ items: [] }>('keys', 'list', '-e', String(id))).items, [])
  const created = await refused('environments', 'create', 'x', '-w', victim)
  assert.match(created.stderr, /means more than one workspace\. Use an id: /)
})

test('a key is the only output on stdout, works, and can be revoked', async () => {
  const made = await server.tacho([
    'keys',
    'create',
    ...WHERE,
    '--name',
    'recorder',
    '--scopes',
    'events:write,usage:read',
    '--expires',
    '90d',
  ])
  assert.match(made.stdout, /^tacho_[0-9a-f]{16}_[0-9a-f]{64}\n$/)
  assert.match(made.stderr, /with events:write, usage:read, until 2/)
  const key = made.stdout.trim()
  const transcripts = path.join(server.directory, 'transcripts.jsonl')
  writeFileSync(transcripts, '{"messages":[{"role":"user","content":"Where is my order?"}]}\n')
  const record = () => runCommand(['import', transcripts], { ...server.variables, TACHO_API_KEY: key })
  const recorded = await record()
  assert.equal(recorded.code, 0, recorded.stderr)
  const id = key.split('_')[1] ?? ''
  assert.match(await text('keys', 'revoke', id, '--yes', ...WHERE), /was revoked at/)
  assert.match(await text('keys', 'list', ...WHERE), new RegExp(`^${id} +recorder +revoked`, 'm'))
  const late = await record()
  assert.equal(late.code, 1)
  assert.match(late.stderr, /\(unauthenticated, request/)
  assert.ok(!late.stderr.includes(key))
})

test('a key in JSON has its scopes, rate and expiry', async () => {
  const line = ['keys', 'create', ...WHERE, '--name', 'k', '--scopes', 'all', '--rate', '7', '--expires', '2099-01-01']
  const key = await json<Record<string, unknown>>(...line)
  assert.deepEqual(key['scopes'], ['events:write', 'config:read', 'policies:read', 'usage:read'])
  assert.deepEqual([key['requestsPerSecond'], key['expiresAt']], [7, '2099-01-01T00:00:00.000Z'])
})

test('a token can come from a file', async () => {
  const file = path.join(server.directory, 'token')
  writeFileSync(file, `${OPERATOR_TOKEN}\n`)
  const { code } = await runCommand(['workspaces', 'list', '--url', server.url, '--token-file', file])
  assert.equal(code, 0)
})
