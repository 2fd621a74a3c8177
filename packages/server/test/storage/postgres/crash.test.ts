/** Crashes under full load, on a database that syncs its disk. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, before, describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { openPostgresStorage } from '../../../src/storage/postgres/open.ts'
import { eventually } from '../../setup/eventually.ts'
import { databasesOf, startPostgres, type PostgresServer, type TestDatabase } from '../../setup/postgres-server.ts'
import { checkKilledRemovals } from '../suite/data/removal-crash.ts'
import { verify, writeUntil } from './load.ts'

const LOAD = fileURLToPath(new URL('load.ts', import.meta.url))

describe('under full load', () => {
  let server: PostgresServer
  let database: TestDatabase
  before(async () => {
    server = await startPostgres({ durable: true })
  })
  after(() => server.close())

  const create = async () => {
    database = await databasesOf(server.url()).create()
  }

  test('kill -9 of a node loses no acknowledged event and counts none twice, while other nodes keep writing', async () => {
    await create()
    const survivor = await openPostgresStorage({ url: database.url })
    const acknowledged: string[] = []
    let isOver = false
    const writing = writeUntil(
      survivor,
      'survivor',
      () => isOver,
      (ids) => acknowledged.push(...ids),
    )
    for (const writer of ['first', 'second']) {
      const told = await killedInLoad(writer, 40)
      assert.ok(told.length >= 40 * 20)
      acknowledged.push(...told)
      // The client of the killed node repeats the batches that got no answer.
      await writeUntil(survivor, `${writer}a`, countdown(10), () => undefined)
    }
    isOver = true
    await writing
    await verify(survivor, acknowledged)
    await survivor.close()
  })

  test('kill -9 in the middle of removals keeps nothing that should go and removes nothing that should stay', async () => {
    await create()
    await checkKilledRemovals({
      place: database.url,
      open: () => openPostgresStorage({ url: database.url, poolSize: 4 }),
      async query(text) {
        const client = new pg.Client(database.url)
        await client.connect()
        await client.query('SET search_path = tacho')
        const { rows } = await client.query<Record<string, unknown>>(text)
        await client.end()
        return rows
      },
    })
  })

  for (const how of ['immediate', 'kill'] as const) {
    test(`a crash of the database (${how}) loses no acknowledged event and counts none twice; nodes reconnect`, async () => {
      await create()
      const states: boolean[] = []
      const open = () =>
        openPostgresStorage({ url: database.url, poolSize: 4, onReachable: (reachable) => states.push(reachable) })
      const nodes = await Promise.all([open(), open()])
      const acknowledged: string[] = []
      let isOver = false
      const writing = nodes.flatMap((storage, number) =>
        ['a', 'b', 'c'].map((name) =>
          writeUntil(
            storage,
            `${number}${name}`,
            () => isOver,
            (ids) => acknowledged.push(...ids),
          ),
        ),
      )
      await eventually(() => acknowledged.length > 2_000, 'the first acknowledgements')
      await server.stop(how)
      await eventually(() => nodes.every((node) => node.writesRefused() === 'storage_unavailable'), 'refused writes')
      await server.start()
      const before = acknowledged.length
      await eventually(() => acknowledged.length > before + 2_000, 'acknowledgements after the restart')
      isOver = true
      await Promise.all(writing)
      for (const node of nodes) {
        await node.ping()
        assert.equal(node.writesRefused(), null)
        await verify(node, acknowledged)
      }
      assert.ok(states.includes(false) && states.at(-1) === true)
      await Promise.all(nodes.map((node) => node.close()))
    })
  }

  test('a node that starts before its database waits for it', async () => {
    await create()
    await server.stop('fast')
    const opening = openPostgresStorage({ url: database.url })
    await wait(300)
    await server.start()
    await (await opening).close()
  })

  /** The events a node acknowledged before it was killed. */
  async function killedInLoad(writer: string, batches: number): Promise<string[]> {
    const child = spawn(process.execPath, [LOAD, database.url, writer], { stdio: ['pipe', 'pipe', 'inherit'] })
    let told = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (told += text))
    const lines = () => told.split('\n').slice(0, -1)
    await eventually(() => lines().length >= batches, `${batches} batches`)
    child.kill('SIGKILL')
    await once(child, 'close')
    return lines().flatMap((line) => line.split(' '))
  }
})

/** Ends the load after this many checks. */
function countdown(times: number): () => boolean {
  let left = times
  return () => left-- <= 0
}
