import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startAdapter } from '../src/adapter.ts'
import { RULES, runRule } from '../src/suite.ts'

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))
const naive = fileURLToPath(new URL('naive-adapter.ts', import.meta.url))

/** Rules that even this SDK keeps. */
const KEPT = new Set([
  'events/headers',
  'events/server-error',
  'events/too-many-requests',
  'events/closed-socket',
  'approvals/rejected',
  'issues/own-record',
])
/** Rules that wait for half a minute until they fail. */
const SLOW = new Set(['events/backoff', 'events/outage', 'events/garbage'])

test('ids are unique', () => {
  assert.equal(new Set(RULES.map(({ id }) => id)).size, RULES.length)
})

describe('the kit finds each rule that an SDK breaks', { concurrency: 8 }, () => {
  const adapter = startAdapter([process.execPath, naive])
  after(() => adapter.stop())
  for (const rule of RULES.filter(({ id }) => !SLOW.has(id))) {
    test(rule.id, async () => {
      const verdict = await runRule(rule, adapter)
      assert.equal(verdict.ok, KEPT.has(rule.id), JSON.stringify(verdict))
    })
  }
})

test("a key in the adapter's output breaks every rule", async () => {
  const adapter = startAdapter([process.execPath, naive, '--tell-key'])
  const rule = RULES.find(({ id }) => id === 'events/headers')
  assert.ok(rule)
  const verdict = await runRule(rule, adapter)
  await adapter.stop()
  assert.deepEqual(verdict, { ok: false, problem: 'the API key is in the output of the adapter' })
})

test('the executable lists the rules, and its exit code says whether one is broken', () => {
  const run = (...args: string[]) => spawnSync(process.execPath, [main, ...args], { encoding: 'utf8' })
  const list = run('--list', '--rule', 'approvals/rejected')
  assert.deepEqual([list.status, list.stdout.trim()], [0, `${'approvals/rejected'.padEnd(32)} REJECTED means no`])
  assert.equal(run().status, 2)
  assert.equal(run('--rule', 'no such rule', '--', 'true').status, 2)
  const broken = run('--rule', 'approvals/expired', '--', process.execPath, naive)
  assert.equal(broken.status, 1)
  assert.match(broken.stdout, /✖ approvals\/expired .*\n {4}the tool ran\n[\s\S]*0 held, 1 broken/)
})
