/** A function that its platform freezes after each answer. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'node:test'
import { startPlace } from './place.ts'
import { startService } from './service.ts'

test('a function that is frozen after each answer has delivered before, and learns new policies after', async (t) => {
  const service = await startService(t)
  const place = await startPlace(t, 'freeze', [])
  const { child, output } = await place.serve(['node', 'main.js'], /(ready)/, service.env)
  const answers = () => output().split('\n').slice(1, -1)
  const call = async () => {
    const count = answers().length
    child.kill('SIGCONT')
    child.stdin.write('call\n')
    while (answers().length === count) await sleep(5)
    child.kill('SIGSTOP')
    return answers().at(-1)
  }
  for (let calls = 1; calls <= 3; calls++) {
    assert.equal(await call(), 'paid 100')
    const outcomes = service.events('freeze').filter(({ eventType }) => eventType === 'SESSION_OUTCOME')
    assert.equal(outcomes.length, calls)
  }
  service.block('refund')
  while ((await call()) !== 'ToolBlockedError') await sleep(100)
  assert.ok(service.events('freeze').some(({ label }) => label === 'BLOCK refund'))
  child.kill('SIGCONT')
})
