/** A failed command is a failed step but not an issue. Every other failure is an issue. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { eventually } from '../../../server/test/setup/eventually.ts'
import { startHooks } from './hook-session.ts'

const { server, session, close } = await startHooks()
after(close)

test('a command that ends with another code is a failed step and opens no issue; other failures open one', async () => {
  const { id, hook, tool } = session()
  const failed = async (call: object, error: string) => {
    await hook('PreToolUse', call)
    await hook('PostToolUseFailure', { ...call, error, is_interrupt: false })
  }
  await failed(tool('npm test', 't-1'), 'Exit code 3\nnot ok 7 - price of item 7')
  await failed(tool('grep x', 't-2'), 'Command failed with exit code 1')
  await failed(tool('sleep 9', 't-3'), 'Permission to run it was lost after exit')
  await failed({ tool_name: 'WebFetch', tool_input: { url: 'x' }, tool_use_id: 't-4' }, 'exit code 7 of a page')
  await hook('SessionEnd', { reason: 'other' })
  const calls = (await server.events(id)).filter(({ eventType }) => eventType === 'TOOL_CALL')
  assert.deepEqual(
    calls.map(({ payload }) => payload['exitCode'] ?? null),
    [3, 1, null, null],
  )
  assert.ok(calls.every(({ payload }) => typeof payload['error'] === 'string'))
  const { operator, environmentId } = server
  const issues = async () => (await operator.listIssues({ params: { environmentId } })).items
  await eventually(async () => (await issues()).length >= 2, 'the issues')
  const found = await issues()
  assert.ok(!found.some(({ title }) => /npm|price|grep|code 1/.test(title)), found.map(({ title }) => title).join('; '))
  const { items: runs } = await operator.listOperatorRuns({ params: { environmentId }, query: { q: id } })
  assert.equal(runs[0]?.errorCount, 4, 'all of them are failed steps')
})
