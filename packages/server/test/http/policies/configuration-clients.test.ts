import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { createConfigurationClients } from '@tacho/server/http/policies/configuration-clients.ts'
import { flushConfigurationClients } from '@tacho/server/jobs/engine/timers.ts'
import { eventually } from '../../setup/eventually.ts'
import { CLIENTS_KEPT_MS, ENDED, type ConfigurationClientSeen } from '@tacho/server/storage/policies/deployments.ts'

const [OLD, NEW] = ['a'.repeat(64), 'b'.repeat(64)]
const tag = `W/"${NEW}"`
const poll = (given: Partial<Parameters<ReturnType<typeof createConfigurationClients>['record']>[0]> = {}) => ({
  environmentId: 'e',
  keyId: 'key',
  clientId: '',
  had: tag,
  tag,
  isClosing: false,
  ...given,
})

test('a client has the revision it names; without a valid one, the revision it gets', () => {
  for (const [had, revision] of [
    [tag, NEW],
    [`"${OLD}"`, OLD],
    [`W/"${OLD}"`, OLD],
    ['', NEW],
    ['*', NEW],
    ['"x"', NEW],
  ] as const) {
    const clients = createConfigurationClients({ now: () => 5 })
    clients.record(poll({ had, clientId: 'c' }))
    const expected = { identifiedBy: 'client', clientId: 'c', keyId: 'key', revision, seenAt: 5 }
    assert.deepEqual(clients.take().get('e'), [expected])
    assert.equal(clients.take().size, 0)
  }
})

test('a client that says that it ends has none, until it asks again', () => {
  const clients = createConfigurationClients({ now: () => 5 })
  const revisions = () =>
    clients
      .take()
      .get('e')
      ?.map(({ revision }) => revision)
  clients.record(poll())
  clients.record(poll({ isClosing: true }))
  assert.deepEqual(revisions(), [ENDED])
  clients.record(poll({ isClosing: true }))
  clients.record(poll())
  assert.deepEqual(revisions(), [NEW])
})

test('a client without an id, or with one that is too long, is the key; no id of a client is taken for a key', () => {
  const clients = createConfigurationClients({ now: () => 5 })
  const longest = 'x'.repeat(LIMITS.textChars)
  for (const clientId of ['', `${longest}x`, longest, 'key', '=key']) clients.record(poll({ clientId }))
  assert.deepEqual(
    clients
      .take()
      .get('e')
      ?.map((seen) => [seen.identifiedBy, seen.clientId]),
    [
      ['key', 'key'],
      ['client', longest],
      ['client', 'key'],
      ['client', '=key'],
    ],
  )
})

test('a flood of ids drops the oldest of its own environment, from one more than the limit', () => {
  const clients = createConfigurationClients({ now: () => 5 })
  clients.record(poll({ environmentId: 'other', clientId: 'calm' }))
  const flood = (count: number) => {
    for (let n = 0; n < count; n++) clients.record(poll({ clientId: `c${n}` }))
    clients.record(poll({ clientId: 'c0' }))
    return clients.take()
  }
  assert.equal(flood(LIMITS.configurationClients).get('e')?.length, LIMITS.configurationClients)
  const taken = flood(LIMITS.configurationClients + 2)
  const ids = taken.get('e')?.map(({ clientId }) => clientId) ?? []
  assert.equal(ids.length, LIMITS.configurationClients)
  assert.deepEqual([ids.includes('c1'), ids.includes('c2'), ids.at(-1)], [false, false, 'c0'])
})

test('many environments together have a limit too', () => {
  const clients = createConfigurationClients({ now: () => 5, maxInAll: 10 })
  for (let n = 0; n < 4; n++)
    for (let of = 0; of < 3; of++) clients.record(poll({ environmentId: `e${of}`, clientId: `${n}` }))
  const taken = clients.take()
  assert.deepEqual(
    ['e0', 'e1', 'e2'].map((id) => taken.get(id)?.length),
    [2, 4, 4],
  )
})

test('polls of a minute become one write per environment, and the last ones are written on stop', async () => {
  const written: [string, number, number][] = []
  const errors: unknown[] = []
  const clients = createConfigurationClients({ now: () => 5 })
  const options = {
    storage: {
      async writeConfigurationClients(id: string, seen: readonly ConfigurationClientSeen[], deleteBefore: number) {
        written.push([id, seen.length, deleteBefore])
        if (id === 'broken') throw new Error('away')
      },
    },
    clients,
    now: () => CLIENTS_KEPT_MS + 7,
    onError: (error: unknown) => errors.push(error),
  }
  const record = () => {
    for (const environmentId of ['broken', 'e', 'broken', 'e']) clients.record(poll({ environmentId }))
  }
  const expected = [
    ['broken', 1, 7],
    ['e', 1, 7],
  ]
  const slow = flushConfigurationClients(options)
  record()
  await new Promise(setImmediate)
  assert.deepEqual(written.splice(0), [])
  await slow.stop()
  assert.deepEqual(written.splice(0), expected)
  const quick = flushConfigurationClients({ ...options, intervalMs: 1 })
  record()
  await eventually(() => written.length > 0, 'a write')
  await quick.stop()
  assert.deepEqual(written, expected)
  assert.equal(errors.length, 2)
})
