/** Connections that fall silent or break during a statement. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openPostgresStorage } from '../../../src/storage/postgres/open.ts'
import { eventually } from '../../setup/eventually.ts'
import { append, event, newId, NOON } from '../suite/sample.ts'
import { refusal, retried, useTestDatabase } from './store-trouble.ts'

const { url: databaseUrl, query, withStorage } = useTestDatabase()

/** A proxy to the database. After a connection sends `text`, it forwards `more` bytes and then nothing. */
async function proxyFallingSilentAt(text: string, more = 200) {
  const target = new URL(databaseUrl())
  const sockets: Socket[] = []
  const { promise: silent, resolve } = Promise.withResolvers<void>()
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname)
    for (const socket of [client, upstream]) sockets.push(socket.on('error', () => undefined))
    upstream.pipe(client)
    let isSilent = false
    client.on('data', (chunk: Buffer) => {
      const at = isSilent ? -1 : chunk.indexOf(text)
      if (!isSilent) upstream.write(at < 0 ? chunk : chunk.subarray(0, at + text.length + more))
      isSilent ||= at >= 0
      if (isSilent) resolve()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(databaseUrl())
  url.port = String((server.address() as AddressInfo).port)
  return {
    url: url.href,
    silent,
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

for (const [part, more] of [
  ['a statement', 20],
  ['its rows', 5_000],
] as const) {
  test(`a node that falls silent while it sends ${part} blocks others only as long as an idle transaction may last`, async () => {
    const proxy = await proxyFallingSilentAt('COPY events', more)
    const timeouts = { statementMs: 2_000, lockMs: 200, idleInTransactionMs: 3_000 }
    const env = newId()
    const inSameRun = () => event({ runId: 'silent', payload: JSON.stringify('x'.repeat(10_000)) })
    try {
      await withStorage({ timeouts }, async (storage) => {
        await append(storage, env, inSameRun())
        const other = await openPostgresStorage({ url: proxy.url, timeouts })
        const failing = assert.rejects(append(other, env, inSameRun()), refusal('storage_unavailable'))
        await proxy.silent
        await assert.rejects(append(storage, env, inSameRun()), refusal('storage_unavailable'))
        assert.deepEqual(await retried(() => append(storage, env, inSameRun())), ['stored'])
        proxy.close()
        await failing
        await other.close()
      })
    } finally {
      proxy.close()
    }
  })
}

test('a database whose connection is cut during a statement counts as unreachable', async () => {
  const proxy = await proxyFallingSilentAt('INSERT INTO workspaces')
  try {
    const storage = await openPostgresStorage({ url: proxy.url })
    const creating = storage.createWorkspace({ id: newId(), name: newId(), createdAt: NOON }, [])
    const failed = assert.rejects(creating, refusal('storage_unavailable'))
    await proxy.silent
    proxy.close()
    await failed
    await storage.close()
  } finally {
    proxy.close()
  }
})

test('a store that is closed while it connects leaves no connection open', async () => {
  for (let delay = 0; delay < 10; delay++) {
    const storage = await openPostgresStorage({ url: databaseUrl() })
    await sleep(delay)
    await storage.close()
  }
  const open =
    "SELECT count(*)::int AS open FROM pg_stat_activity WHERE application_name = 'tacho' AND datname = current_database()"
  await eventually(async () => (await query(open)).rows[0]?.['open'] === 0, 'no connection of a closed store')
})
