/** The demo uses a separate environment, and can be removed. The other environment stays the same, byte for byte. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { API_KEY, runCommand, startServer } from '../tacho.ts'

const server = await startServer()
after(() => server.stop())
const { json, text } = server

interface Page<Item> {
  items: Item[]
}

/** The configuration and the export of the first environment. */
async function inForce() {
  const configuration = await fetch(`${server.url}/openapi/v1/runtime-config`, { headers: { 'x-api-key': API_KEY } })
  const exported = await text('export', '-e', 'default/development')
  // Leave out the first line, which has the time of the export.
  return [await configuration.text(), exported.slice(exported.indexOf('\n'))]
}

const environments = async (...flags: string[]) =>
  (await json<Page<{ name: string; deleteAt: string | null }>>('environments', 'list', ...flags)).items

test('a demo leaves everything else as it is, is used only by name, and is removed again', async () => {
  await text(
    'policies',
    'create',
    'refund-limit',
    '-w',
    'default',
    '--condition',
    'true',
    '--severity',
    'LOW',
    '--action',
    'BLOCK',
  )
  await text('policies', 'deploy', 'refund-limit', '-e', 'default/development')
  const before = await inForce()

  const { code, stderr } = await runCommand(['demo', '--seed', 'one'], { ...server.variables, TACHO_API_KEY: 'unused' })
  assert.equal(code, 0, stderr)
  assert.deepEqual(await inForce(), before)
  assert.deepEqual((await json<Page<object>>('runs', 'list')).items, [])
  const ofDemo = async () => (await json<Page<object>>('runs', 'list', '-e', 'default/tacho-demo', '--all')).items
  assert.equal((await ofDemo()).length, 16 + 2 * 18 + 4)
  const asked = async (status: string) => {
    const of = ['-e', 'default/tacho-demo', '--status', status]
    return (await json<Page<{ inputCheck: { result: string } }>>('approvals', 'list', ...of)).items
  }
  const checks = (await Promise.all(['PENDING', 'APPROVED', 'REJECTED'].map(asked))).flat()
  assert.deepEqual(
    checks.map(({ inputCheck }) => inputCheck.result),
    Array(4).fill('matches'),
  )
  const keys = await json<Page<{ revokedAt: string | null }>>('keys', 'list', '-e', 'default/tacho-demo')
  assert.ok(keys.items.length === 1 && keys.items[0]?.revokedAt)
  const search = await json<{ state: string }>('search', '--status', '-e', 'default/tacho-demo')
  assert.match(search.state, /^(INDEXING|ON)$/)

  assert.match(await text('demo', '--remove'), /^The demo is archived as tacho-demo-\w{12}, and deleted at 2/)
  assert.deepEqual(
    (await environments()).map(({ name }) => name),
    ['development'],
  )
  assert.ok((await environments('--archived')).some(({ name, deleteAt }) => name.startsWith('tacho-demo-') && deleteAt))
  const policies = await json<Page<{ policyId: string }>>('policies', 'list', '-w', 'default')
  assert.deepEqual(
    policies.items.map(({ policyId }) => policyId),
    ['refund-limit'],
  )
  assert.deepEqual((await json<Page<object>>('prompts', 'list', '-w', 'default')).items, [])
  assert.deepEqual(await inForce(), before)
  assert.match(await text('demo', '--remove'), /^There is no demo in the workspace default\.\n$/)

  await text('demo', '--seed', 'two')
  assert.equal((await ofDemo()).length, 16 + 2 * 18 + 4)
  const { items } = await json<Page<{ failed: number }>>(
    'prompts',
    'results',
    'demo-shop-support',
    '-e',
    'default/tacho-demo',
  )
  assert.equal(items.length, 2)
})

test('what somebody deployed elsewhere stays when the demo is removed', async () => {
  await text('policies', 'deploy', 'demo-refund-limit', '-e', 'default/development')
  const before = await inForce()
  await text('demo', '--remove')
  assert.deepEqual(await inForce(), before)
})
