import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startService } from '../../setup/service.ts'
import { replyOf } from './contract.ts'

async function report(flags: Record<string, string>) {
  const service = await startService(flags)
  try {
    return replyOf('readDoctor', await service.operator('/doctor'))
  } finally {
    await service.close()
  }
}

test('a healthy installation is ok, and each check has a unique name and a finding', async () => {
  const { ok, version, checks } = await report({})
  assert.equal(ok, true)
  assert.match(version, /^\d+\.\d+\.\d+/)
  const names = checks.map(({ name }) => name)
  assert.equal(new Set(names).size, names.length)
  for (const name of ['version', 'clock', 'address', 'rate limit', 'disk', 'background work'])
    assert.ok(names.includes(name), name)
  for (const { detail } of checks) assert.ok(detail.length > 0)
})

test('a public address without a TLS proxy causes a warning', async () => {
  const address = async (flags: Record<string, string>) =>
    (await report(flags)).checks.find(({ name }) => name === 'address')?.detail ?? ''
  assert.match(await address({ host: '127.0.0.2' }), /this machine only/)
  assert.match(await address({ host: '0.0.0.0' }), /Warning.*TLS/)
  assert.match(await address({ host: '0.0.0.0', trustProxy: '10.0.0.0/8' }), /behind 10\.0\.0\.0\/8$/)
})

test('a nearly full disk makes the report not ok, and the report says what to do', async () => {
  const { ok, checks } = await report({ minFreeDisk: '1TiB' })
  assert.equal(ok, false)
  assert.deepEqual(
    checks.filter((check) => !check.ok).map(({ name }) => name),
    ['disk'],
  )
})

test('those who ask at the same time share one reading of the store', async () => {
  const service = await startService()
  let threads = 0
  const count = () => (threads += 1)
  try {
    await service.operator('/doctor')
    process.on('worker', count)
    const answers = await Promise.all(Array.from({ length: 50 }, () => service.operator('/doctor')))
    assert.ok(answers.every(({ status }) => status === 200))
    // The first ones may be answered before the last ones are read from their sockets.
    assert.ok(threads <= 5, `${threads}`)
  } finally {
    process.off('worker', count)
    await service.close()
  }
})
