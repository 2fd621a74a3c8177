/** Commands that open stores and databases directly: copy, recover and migrate. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { eventually } from '../../server/test/setup/eventually.ts'
import { testDatabases, type TestDatabases } from '../../server/test/setup/postgres-server.ts'
import { OPERATOR_TOKEN, API_KEY, runCommand, serveFrom, startServer } from './tacho.ts'

const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-stores-'))
let databases: TestDatabases
before(async () => {
  databases = await testDatabases()
})
after(async () => {
  await databases.close()
  rmSync(directory, { recursive: true })
})

test('an installation is copied from its file to a database and back, and the same key reads its runs', async () => {
  const server = await startServer()
  const demo = await runCommand(['demo', '--seed', 'copy', '--json'], server.variables)
  assert.equal(demo.code, 0, demo.stderr)
  const listed = async (url: string) => {
    const variables = { TACHO_URL: url, TACHO_OPERATOR_TOKEN: OPERATOR_TOKEN, TACHO_API_KEY: API_KEY }
    const { stdout } = await runCommand(['runs', 'list', '-e', 'default/tacho-demo', '--all', '--json'], variables)
    return stdout
  }
  const before = await listed(server.url)
  const running = await runCommand(['copy', '--from', `sqlite:${server.dataDir}`, '--to', `sqlite:${directory}/x`])
  assert.deepEqual([running.code, running.stdout], [1, ''])
  assert.match(running.stderr, /^tacho: The store in .* is open in another process\. Stop that process first\.\n$/)
  const kept = path.join(directory, 'kept')
  const { url, drop } = await databases.createEmpty()

  // Stopping the server removes the directory, so keep a copy.
  const backup = path.join(directory, 'backup.db')
  assert.equal((await server.tacho(['backup', backup])).code, 0)
  await server.stop()
  assert.equal((await runCommand(['restore', backup, '--data-dir', kept])).code, 0)

  const variables = { TACHO_DATABASE_URL: url }
  const there = await runCommand(['copy', '--from', `sqlite:${kept}`, '--to', 'postgres:', '--json'], variables)
  assert.equal(there.code, 0, there.stderr)
  const report = JSON.parse(there.stdout) as { outcome: string; rows: number }
  assert.equal(report.outcome, 'copied')
  assert.ok(report.rows > 100)
  const onDatabase = await serveFrom(path.join(directory, 'unused'), variables)
  assert.equal(await listed(onDatabase.url), before)
  await onDatabase.stop()

  const back = await runCommand(['copy', '--from', 'postgres:', '--to', `sqlite:${directory}/back`], variables)
  assert.equal(back.code, 0, back.stderr)
  assert.match(
    back.stdout,
    /^[\d,]+ rows in \d+ tables copied from the database .* to .*back; both stores are equal\.\n$/,
  )
  const onFile = await serveFrom(path.join(directory, 'back'))
  assert.equal(await listed(onFile.url), before)
  await onFile.stop()
  await drop()
})

test('a lost operator token can be replaced while the servers of a database run', async () => {
  const { url, drop } = await databases.create()
  const variables = { TACHO_DATABASE_URL: url }
  const served = await serveFrom(path.join(directory, 'unused'), variables)
  const { code, stdout, stderr } = await runCommand(['recover', '--revoke-old', '--json'], variables)
  assert.equal(code, 0, stderr)
  const { operatorToken } = JSON.parse(stdout) as { operatorToken: string }
  const list = (token: string) =>
    runCommand(['workspaces', 'list', '--json'], { TACHO_URL: served.url, TACHO_OPERATOR_TOKEN: token })
  assert.equal((await list(operatorToken)).code, 0)
  await eventually(async () => (await list(OPERATOR_TOKEN)).code !== 0, 'a rejected old token')
  await served.stop()
  await drop()
})

test('migrate lists what it applied; the next time there is nothing to migrate', async () => {
  const { url, drop } = await databases.createEmpty()
  const first = await runCommand(['migrate', '--database-url', url])
  assert.equal(first.code, 0, first.stderr)
  assert.match(first.stdout, /^Applied 001_schema\.sql\n/)
  const again = await runCommand(['migrate'], { TACHO_DATABASE_URL: url })
  assert.match(again.stdout, /^The database \S+ has schema \d+; nothing to migrate\.\n$/)
  assert.ok(!again.stdout.includes('postgres:'), 'no password is shown')
  await drop()
})

test('five machines can migrate at once; each migration is applied once', async () => {
  const { url, drop } = await databases.createEmpty()
  const variables = { TACHO_DATABASE_URL: url }
  const ends = await Promise.all(Array.from({ length: 5 }, () => runCommand(['migrate', '--json'], variables)))
  const applied = ends.flatMap(({ code, stdout, stderr }) => {
    assert.equal(code, 0, stderr)
    return (JSON.parse(stdout) as { applied: string[] }).applied
  })
  assert.ok(applied.length > 0)
  assert.equal(new Set(applied).size, applied.length)
  await drop()
})

test('distributing needs a Citus database, and says so', async (t) => {
  const { url, drop } = await databases.createEmpty()
  const { code, stderr, stdout } = await runCommand(['migrate', '--citus', '--json', '--database-url', url])
  if (code === 0) {
    assert.ok((JSON.parse(stdout) as { distributed: string[] }).distributed.includes('events'))
    t.diagnostic('distributed on the given Citus')
  } else {
    assert.equal(code, 1)
    assert.match(stderr, /^tacho: The database has no Citus extension/)
  }
  await drop()
})

test('database failures are one sentence', async () => {
  const none = await runCommand(['migrate'])
  assert.deepEqual([none.code, none.stdout], [2, ''])
  assert.match(none.stderr, /^tacho: No database given: set TACHO_DATABASE_URL/)
  const wrong = await runCommand(['copy', '--from', 'data', '--to', 'sqlite:x'])
  assert.match(wrong.stderr, /^tacho: A store must be sqlite:<directory> or postgres:/)
  const closed = await runCommand([
    'copy',
    '--from',
    'postgres://u:secret@127.0.0.1:1/d',
    '--to',
    `sqlite:${directory}/y`,
  ])
  assert.deepEqual([closed.code, closed.stdout], [1, ''])
  assert.match(closed.stderr, /^tacho: The database 127\.0\.0\.1:1\/d cannot be used: .*\.\n$/)
  assert.ok(!closed.stderr.includes('secret'))
})
