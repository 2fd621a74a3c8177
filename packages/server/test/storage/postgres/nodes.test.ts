/** Rules about several nodes. In these tests, each node is a separate engine on one database. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import pg from 'pg'
import { openPostgresStorage } from '../../../src/storage/postgres/open.ts'
import type { EventRowRead, NewEvent } from '../../../src/storage/record/events.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { eventually } from '../../setup/eventually.ts'
import { testDatabases, type TestDatabase, type TestDatabases } from '../../setup/postgres-server.ts'
import { issueRecord } from '../suite/issues/issue-sample.ts'
import { failCopiesAsOnCitus } from './rules.ts'
import { append, batch, event, HOUR, llmCall, newId, NOON, outcome, runOf } from '../suite/sample.ts'

let databases: TestDatabases
let database: TestDatabase
let nodes: Storage[]
before(async () => {
  databases = await testDatabases()
  database = await databases.create()
  nodes = await Promise.all([1, 2].map(() => openPostgresStorage({ url: database.url, poolSize: 6 })))
})
after(async () => {
  await Promise.all(nodes.map((node) => node.close()))
  await database.drop()
  await databases.close()
})
const node = (number: number): Storage => nodes[number % nodes.length] ?? (undefined as never)

const shuffled = <Item>(items: readonly Item[], order: readonly number[]) =>
  items
    .map((item, index) => ({ item, key: order[index % order.length] ?? 0 }))
    .toSorted((a, b) => a.key - b.key)
    .map(({ item }) => item)

describe('a node whose clock is a minute ahead', () => {
  test("leases work by the database's clock, so it takes nothing from a live node", async () => {
    const minute = 60_000
    const ahead = () => Date.now() + minute
    const fast = await openPostgresStorage({ url: database.url, poolSize: 2, now: ahead })
    const [slow] = nodes
    assert.ok(slow)
    try {
      assert.ok(Math.abs(fast.clockOffsetMs() + minute) < minute / 2)
      const claim = (storage: Storage, owner: string, now: number) => {
        const at = now + storage.clockOffsetMs()
        return storage.claimWork({
          kind: 'review_issue_record',
          owner,
          now: at,
          leaseUntil: at + minute / 2,
          limit: 100,
        })
      }
      const record = issueRecord(newId(), { receivedAt: Date.now() - minute })
      await slow.receiveIssueRecord(record)
      assert.equal((await claim(slow, 'slow', Date.now())).length, 1)
      assert.deepEqual(await claim(fast, 'fast', ahead()), [])
    } finally {
      await fast.close()
    }
  })
})

/** Waits until a node knows how many nodes serve the database. Each sends a heartbeat every few seconds. */
async function untilCounts(storage: Storage, count: number): Promise<void> {
  await eventually(() => storage.nodes() === count, `${count} nodes`)
}

test('a readiness check writes nothing', async () => {
  const stamp = async () =>
    JSON.stringify(await run(database.url, 'SELECT node_id, xmin FROM tacho.nodes ORDER BY node_id'))
  // Check several times: a heartbeat writes every few seconds, so one may fall between two checks, but not between all.
  const written: boolean[] = []
  for (let looks = 0; looks < 10; looks++) {
    const before = await stamp()
    await node(0).ping()
    written.push((await stamp()) !== before)
  }
  assert.ok(written.includes(false))
})

describe('two nodes on one database', () => {
  test('store each event once, whichever node gets a retry, in any order and any batches', async () => {
    const deliveries = fc.record({
      orders: fc.array(fc.array(fc.nat(), { minLength: 7, maxLength: 7 }), { minLength: 2, maxLength: 6 }),
      size: fc.integer({ min: 3, max: 40 }),
    })
    await fc.assert(
      fc.asyncProperty(deliveries, async ({ orders, size }) => {
        const env = newId()
        const events = Array.from({ length: 60 }, (_, index) =>
          llmCall(
            { model: `m${index % 3}`, promptTokens: index, totalTokens: 2 * index, costNanos: 1 },
            { runId: `run ${index % 7}`, agentId: 'a', sessionId: 's', time: NOON + index },
          ),
        )
        const verdicts = await Promise.all(
          orders.flatMap((order, number) => {
            const sent = shuffled(events, order)
            const batches = Array.from({ length: Math.ceil(60 / size) }, (_, n) => sent.slice(n * size, (n + 1) * size))
            return batches.map(async (some, n) => {
              const told = await append(node(number + n), env, ...some)
              return some.map(({ eventId }, index) => [eventId, told[index]] as const)
            })
          }),
        )
        const stored = verdicts.flat().filter(([, verdict]) => verdict === 'stored')
        assert.equal(stored.length, events.length)
        assert.equal(new Set(stored.map(([eventId]) => eventId)).size, events.length)
        assert.deepEqual(new Set(verdicts.flat().map(([, verdict]) => verdict)), new Set(['stored', 'duplicate']))
        const runs = (await node(0).listRuns(env, {}, { limit: 10, after: null })).rows
        const sum = (of: (row: (typeof runs)[number]) => number) => runs.reduce((total, row) => total + of(row), 0)
        assert.deepEqual(
          [
            runs.length,
            sum((run) => run.eventCount),
            sum((run) => run.promptTokens),
            sum((run) => run.differingRetries),
          ],
          [7, 60, (59 * 60) / 2, 0],
        )
        const hours = (await node(1).readUsage(env, 0, 2 * NOON, { limit: 200, after: null })).rows
        assert.equal(
          hours.reduce((total, hour) => total + hour.promptTokens, 0),
          (59 * 60) / 2,
        )
        assert.equal(
          hours.reduce((total, hour) => total + hour.events, 0),
          60,
        )
      }),
      { numRuns: 15 },
    )
  })

  test('store a batch once, without an error, if both get it at once', async () => {
    const asBefore = failCopiesAsOnCitus()
    const outsider = new pg.Client({ connectionString: database.url, options: '-c search_path=tacho' })
    await outsider.connect()
    try {
      const env = newId()
      await append(node(0), env, event())
      await append(node(1), env, event())
      const events = [event(), event(), event()]
      // Both transactions search for stored events before either has stored one.
      await outsider.query(`BEGIN; SELECT 1 FROM runs WHERE environment_id = '${env}' FOR UPDATE`)
      const verdicts = [append(node(0), env, ...events), append(node(1), env, ...events)]
      const waiting = `SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND state = 'active' AND query LIKE '%runs%FOR NO KEY UPDATE%'
          AND pid <> pg_backend_pid()`
      await eventually(async () => (await run(database.url, waiting)).length === 2, 'two nodes that wait for the run')
      await outsider.query('COMMIT')
      assert.deepEqual((await Promise.all(verdicts)).flat().toSorted(), [
        ...events.map(() => 'duplicate'),
        ...events.map(() => 'stored'),
      ])
      assert.equal((await runOf(node(0), env)).eventCount, 2 + events.length)
    } finally {
      asBefore()
      await outsider.end()
    }
  })

  test('count each tool and model under one name when both use up the last of the 1,000 names', async () => {
    const most = 1_000
    for (let round = 0; round < 4; round++) {
      const env = newId()
      const used = (name: string, runId: string) => [
        event({ eventType: 'TOOL_CALL', toolUse: { tool: name, problem: null }, runId }),
        llmCall({ model: name }, { runId }),
      ]
      const names = Array.from({ length: most + 12 }, (_, n) => `name ${n}`)
      for (let n = 0; n < most - 8; n += 248) {
        await append(node(0), env, ...names.slice(n, n + 248).flatMap((name) => used(name, 'first')))
      }
      const [last, times] = [names.slice(most - 8), 8]
      const order = (sender: number) => [...last.slice(sender * 3), ...last.slice(0, sender * 3)]
      const send = (sender: number) =>
        append(node(sender), env, ...order(sender % 6).flatMap((name) => used(name, `run ${sender}`)))
      await Promise.all(Array.from({ length: times }, (_, sender) => send(sender)))
      // From now on, each node uses its cached runs.
      for (let sender = 0; sender < 2; sender++) await send(times + sender)
      for (const by of ['tool', 'model'] as const) {
        const window = { by, from: NOON - (NOON % HOUR), to: NOON + HOUR, stepMs: 2 * HOUR }
        const tenant = { environmentId: env, workspaceId: env }
        const { rows } = await node(0).readUsagePoints(tenant, window, { limit: 2 * most, after: null })
        const counts = new Map(rows.map(({ name, events }) => [name, events]))
        if (by === 'model') counts.delete('')
        assert.equal(counts.size, most + 1, by)
        assert.equal(counts.get('other'), (last.length - 8) * (times + 2), by)
        const own = last.flatMap((name) => counts.get(name) ?? [])
        assert.deepEqual(
          own,
          Array.from({ length: 8 }, () => times + 2),
          by,
        )
      }
    }
  })

  test('close a run once, with the outcome that arrives first', async () => {
    for (let round = 0; round < 10; round++) {
      const env = newId()
      const ends = Array.from({ length: 8 }, (_, n) =>
        outcome(n % 2 === 0 ? 'FAILED' : 'COMPLETED', { time: NOON + n }),
      )
      await Promise.all(ends.map((end, n) => append(node(n), env, end)))
      const run = await runOf(node(0), env)
      const arrived = await node(1).listEventRows(env, run.id, { limit: 10, order: 'arrival', after: null })
      assert.equal(run.endedAt, arrived.rows[0]?.time)
      const closing = await node(0).findEvent(env, 'run', arrived.rows[0]?.eventId ?? '')
      assert.equal(closing?.closedRun, true)
    }
  })

  test('open one run between them, with the agent of the event that arrives first', async () => {
    for (let round = 0; round < 10; round++) {
      const env = newId()
      await Promise.all(Array.from({ length: 8 }, (_, n) => append(node(n), env, event({ agentId: `agent ${n}` }))))
      const run = await runOf(node(0), env)
      const arrived = await node(1).listEventRows(env, run.id, { limit: 10, order: 'arrival', after: null })
      assert.deepEqual([run.eventCount, run.agentExternalId], [8, arrived.rows[0]?.agentId])
    }
  })

  test('hide no event from a reader that follows a run by arrival while both write to it', async () => {
    const env = newId()
    await append(node(0), env, event())
    const { id } = await runOf(node(0), env)
    let isWriting = true
    const writing = Promise.all(
      Array.from({ length: 6 }, async (_, writer) => {
        for (let n = 0; n < 30; n++) await append(node(writer), env, ...Array.from({ length: 5 }, () => event()))
      }),
    ).finally(() => (isWriting = false))
    const seen: EventRowRead[] = []
    // Read until a page that was requested after the last write is empty.
    for (let isDone = false; !isDone;) {
      const wasWriting = isWriting
      const { time, seq } = seen.at(-1) ?? { time: 0, seq: 0 }
      const page = { limit: 200, order: 'arrival', after: { time, seq } } as const
      const { rows } = await node(seen.length).listEventRows(env, id, page)
      seen.push(...rows)
      isDone = !wasWriting && rows.length === 0
    }
    await writing
    assert.equal(new Set(seen.map(({ eventId }) => eventId)).size, 1 + 6 * 30 * 5)
  })

  test('show the newest name of an agent, whichever node stored it', async () => {
    const env = newId()
    const named = (agentName: string, time: number): NewEvent => event({ agentId: 'a', agentName, time })
    await append(node(0), env, named('first', NOON))
    await append(node(1), env, named('third', NOON + 20_000))
    await append(node(0), env, named('second', NOON + 10_000))
    assert.equal((await runOf(node(0), env)).agentName, 'third')
    await append(node(0), env, named('fourth', NOON + 30_000))
    await append(node(1), env, named('third', NOON + 29_000))
    assert.equal((await runOf(node(1), env)).agentName, 'fourth')
  })

  test('agree on which events are stored already', async () => {
    const env = newId()
    const [known, changed, old] = [event(), event(), event({ onlyIfStored: true, runId: 'another' })]
    await append(node(0), env, known, changed)
    const verdicts = await append(node(1), env, { ...changed, label: 'other' }, event(), known, old)
    assert.deepEqual(verdicts, ['duplicate', 'stored', 'duplicate', 'absent'])
    assert.equal((await runOf(node(0), env)).differingRetries, 1)
    assert.equal(await node(0).findRun(env, 'another'), null)
  })

  test('count each other until one closes', async () => {
    const third = await openPostgresStorage({ url: database.url, poolSize: 1 })
    assert.equal(third.nodes(), 3)
    await untilCounts(node(0), 3)
    await third.close()
    await untilCounts(node(0), 2)
  })

  test('see changes of the other to keys and tenants at once', async () => {
    const before = await node(1).controlRevision()
    await node(0).createWorkspace({ id: newId(), name: newId(), createdAt: NOON }, [])
    assert.ok((await node(1).controlRevision()) > before)
  })

  test('share one bound on remembered rejections', async () => {
    const env = newId()
    const rejections = Array.from({ length: 12_000 }, (_, n) => ({
      runId: 'run',
      eventId: `e${n}`,
      code: 'too_long' as const,
      rejectedAt: NOON + n,
    }))
    for (let n = 0; n < rejections.length; n += 2000) {
      const halves = [rejections.slice(n, n + 1000), rejections.slice(n + 1000, n + 2000)]
      await Promise.all(halves.map((half, index) => node(index).appendEvents(batch(env, [], { rejections: half }))))
    }
    assert.equal(await node(0).findRejection(env, 'run', 'e0'), null)
    assert.ok(await node(0).findRejection(env, 'run', 'e11999'))
  })
})

test('when several nodes start at once on an empty database, one creates the tables and all of them serve', async () => {
  const empty = await databases.createEmpty()
  const started = await Promise.all(
    Array.from({ length: 5 }, () => openPostgresStorage({ url: empty.url, poolSize: 2 })),
  )
  const env = newId()
  await Promise.all(started.map((one, n) => append(one, env, event({ runId: `run ${n}` }))))
  assert.equal((await started[0]?.listRuns(env, {}, { limit: 9, after: null }))?.rows.length, 5)
  for (const one of started) await untilCounts(one, 5)
  await Promise.all(started.map((one) => one.close()))
  await empty.drop()
})

test('a silent node loses its slot to the next one, and takes another when it wakes up', async () => {
  const own = await databases.create()
  const open = () => openPostgresStorage({ url: own.url, poolSize: 1 })
  const [first, second] = [await open(), await open()]
  const slots = () => run(own.url, 'SELECT slot FROM tacho.nodes ORDER BY slot')
  let third: Storage
  for (;;) {
    await run(own.url, 'UPDATE tacho.nodes SET heartbeat_at = 0 WHERE slot = 0')
    third = await open()
    // If the first node sent a heartbeat in between, it kept its slot. Then try again.
    if ((await slots()).length === 2) break
    await third.close()
  }
  assert.deepEqual(await slots(), [{ slot: 0 }, { slot: 1 }])
  await untilCounts(first, 3)
  assert.deepEqual(await run(own.url, 'SELECT slot FROM tacho.nodes ORDER BY slot'), [
    { slot: 0 },
    { slot: 1 },
    { slot: 2 },
  ])
  await Promise.all([first, second, third].map((node) => node.close()))
  assert.deepEqual(await run(own.url, 'SELECT slot FROM tacho.nodes'), [])
  await own.drop()
})

test('nodes do not deadlock when their batches overlap in opposite order', async () => {
  const own = await databases.create()
  // Switch off deadlock detection, so that a deadlock would end with the lock timeout.
  await run(own.url, `ALTER DATABASE ${new URL(own.url).pathname.slice(1)} SET deadlock_timeout = '60s'`)
  const open = () => openPostgresStorage({ url: own.url, poolSize: 8, timeouts: { lockMs: 5_000 } })
  const [one, two] = await Promise.all([open(), open()])
  const env = newId()
  const runs = Array.from({ length: 40 }, (_, n) => `run ${n}`)
  for (let round = 0; round < 15; round++) {
    const fresh = runs.map((runId) =>
      llmCall(
        { model: `m${round}` },
        { runId, agentId: `a${runId}`, agentName: `n${round}`, time: NOON + round * 5_000 },
      ),
    )
    const old = fresh.map((sent) => ({ ...sent, onlyIfStored: true }))
    const rejections = fresh.map(({ runId, eventId }) => ({ runId, eventId, code: 'empty' as const, rejectedAt: NOON }))
    await Promise.all([
      one.appendEvents(batch(env, fresh, { rejections })),
      two.appendEvents(batch(env, fresh.toReversed(), { rejections: rejections.toReversed() })),
      append(one, env, ...old.toReversed()),
      append(two, env, ...fresh.filter((_, n) => n % 2 === 0), ...old),
    ])
  }
  assert.equal((await runOf(two, env, 'run 7')).eventCount, 15)
  await Promise.all([one.close(), two.close()])
  await own.drop()
})

async function run(url: string, statement: string): Promise<unknown[]> {
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query<Record<string, unknown>>(statement)
  await client.end()
  return rows
}
