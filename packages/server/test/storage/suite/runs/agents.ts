import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { AgentChange, AgentRow } from '../../../../src/storage/runs/runs.ts'
import type { Page } from '../../../../src/storage/engine/page.ts'
import { auditEntry } from '../policies/configuration-sample.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { append, event, newId, NOON, runOf } from '../sample.ts'

export function agentsSuite(open: OpenStorage) {
  describe('an agent', () => {
    const storage = sharedStorage(open)

    test('is identified by agentId, else by name; an id and an equal name are different agents', async () => {
      const env = newId()
      const named = [
        event({ runId: '1', agentId: 'a', agentName: 'x' }),
        event({ runId: '2', agentId: 'a', agentName: 'x' }),
        event({ runId: '3', agentName: 'a' }),
        event({ runId: '4', agentName: 'x' }),
        event({ runId: '5', agentName: 'a' }),
      ]
      await append(storage(), env, ...named)
      const ids = await Promise.all(named.map(async ({ runId }) => (await runOf(storage(), env, runId)).agentId))
      assert.equal(ids[0], ids[1])
      assert.equal(ids[2], ids[4])
      assert.equal(new Set(ids).size, 3)
      assert.equal((await runOf(storage(), env, '3')).agentExternalId, null)
    })

    test('is a different one in another environment', async () => {
      const [one, two] = [newId(), newId()]
      await append(storage(), one, event())
      await append(storage(), two, event())
      assert.notEqual((await runOf(storage(), one)).agentId, (await runOf(storage(), two)).agentId)
    })

    test('of a run is always the agent of its first stored event', async () => {
      const env = newId()
      await append(storage(), env, event({ agentId: 'first' }), event({ agentId: 'second', time: NOON - 1 }))
      await append(storage(), env, event({ agentId: 'third' }))
      assert.equal((await runOf(storage(), env)).agentExternalId, 'first')
    })

    test('shows its newest name by event time; of equal times, the later arrival', async () => {
      const env = newId()
      const named = (agentName: string, time: number) => event({ agentId: 'a', agentName, time })
      const name = async () => (await runOf(storage(), env)).agentName
      await append(storage(), env, named('now', NOON))
      await append(storage(), env, named('older', NOON - 1))
      assert.equal(await name(), 'now')
      await append(storage(), env, named('later', NOON + 2), named('between', NOON + 1))
      assert.equal(await name(), 'later')
      await append(storage(), env, named('later still', NOON + 2))
      assert.equal(await name(), 'later still')
    })

    test('keeps its newest name when that name arrives again later', async () => {
      const env = newId()
      const named = (agentName: string, time: number) => event({ agentId: 'a', agentName, time })
      await append(storage(), env, named('kept', NOON))
      await append(storage(), env, named('kept', NOON + 5))
      await append(storage(), env, named('late but older', NOON + 3))
      assert.equal((await runOf(storage(), env)).agentName, 'kept')
    })

    test('is renamed by an event of any run, and by no retry', async () => {
      const env = newId()
      const first = event({ runId: '1', agentId: 'a', agentName: 'old' })
      await append(storage(), env, first, event({ runId: '2', agentId: 'b' }))
      await append(storage(), env, event({ runId: '2', agentId: 'a', agentName: 'new', time: NOON + 1 }))
      await append(storage(), env, { ...first, agentName: 'retry', time: NOON + 2 })
      assert.equal((await runOf(storage(), env, '1')).agentName, 'new')
    })

    test('that is new in many concurrent batches is one agent', async () => {
      const env = newId()
      const runs = Array.from({ length: 20 }, (_, n) => `run ${n}`)
      await Promise.all(runs.map((runId) => append(storage(), env, event({ runId, agentId: 'same' }))))
      const ids = await Promise.all(runs.map(async (runId) => (await runOf(storage(), env, runId)).agentId))
      assert.equal(new Set(ids).size, 1)
    })

    test('has the name that an operator gave it, until it gets the reported one back', async () => {
      const env = newId()
      await append(storage(), env, event({ agentId: 'a', agentName: 'reported' }))
      const { agentId: id } = await runOf(storage(), env)
      const rename = async (displayName: string) => {
        const row = await storage().changeAgent(env, id, { displayName }, [])
        return row === 'no_id' ? row : row?.displayName
      }
      assert.equal(await rename('given'), 'given')
      await append(storage(), env, event({ agentId: 'a', agentName: 'reported later', time: NOON + 1 }))
      const row = await runOf(storage(), env)
      assert.deepEqual([row.agentName, row.agentDisplayName], ['reported later', 'given'])
      const { rows } = await storage().listRuns(env, { agent: 'given' }, { limit: 10, after: null })
      assert.equal(rows.length, 1)
      assert.equal(await rename('reported later'), null)
      await append(storage(), env, event({ agentName: 'no id', runId: 'no id' }))
      const named = await runOf(storage(), env, 'no id')
      assert.equal(await storage().changeAgent(env, named.agentId, { displayName: 'x' }, []), 'no_id')
      assert.equal(await storage().changeAgent(newId(), id, { displayName: 'x' }, []), null)
    })

    test('is found by a part of its id or of any of its names, in its environment', async () => {
      const env = newId()
      const agents = [
        { agentId: 'support-1', agentName: 'First Line' },
        { agentId: 'billing', agentName: 'Ledger 100%' },
        { agentName: 'Ärzte Line' },
      ]
      for (const [index, agent] of agents.entries())
        await append(storage(), env, event({ ...agent, runId: String(index) }))
      const { agentId } = await runOf(storage(), env, '1')
      await storage().changeAgent(env, agentId, { displayName: 'Accounts' }, [])
      const find = async (search: string, place = env) => {
        const { rows } = await storage().listAgents(place, { limit: 10, after: null }, { withArchived: true, search })
        return rows.map(({ reportedName }) => reportedName)
      }
      assert.deepEqual(await find('LINE'), ['First Line', 'Ärzte Line'])
      assert.deepEqual(await find('port-1'), ['First Line'])
      for (const search of ['acc', '0%', 'BILL']) assert.deepEqual(await find(search), ['Ledger 100%'], search)
      assert.deepEqual([await find('ärzte'), await find('_'), await find('acc', newId())], [[], [], []])
      const line = { withArchived: true, search: 'line' }
      const first = await storage().listAgents(env, { limit: 1, after: null }, line)
      const second = await storage().listAgents(env, { limit: 1, after: first.rows[0]?.id ?? null }, line)
      assert.deepEqual([first.more, second.rows[0]?.reportedName, second.more], [true, 'Ärzte Line', false])
    })

    test('is archived until a run of it starts later; pages have any size', async () => {
      const env = newId()
      for (const agentId of ['a', 'b', 'c']) await append(storage(), env, event({ agentId, runId: agentId }))
      const list = async (withArchived: boolean, limit = 10) => {
        const found: (string | null)[] = []
        for (let after: string | null = null; ;) {
          const { rows }: Page<AgentRow> = await storage().listAgents(env, { limit, after }, { withArchived })
          found.push(...rows.map(({ externalId, archivedAt }) => (archivedAt === null ? externalId : `-${externalId}`)))
          after = rows.at(-1)?.id ?? null
          if (after === null) return found
        }
      }
      const archive = async (runId: string, archivedAt: number | null) => {
        const { agentId } = await runOf(storage(), env, runId)
        const row = await storage().changeAgent(env, agentId, { archivedAt }, [])
        return row === 'no_id' ? null : row
      }
      assert.equal((await archive('b', NOON + 5))?.archivedAt, NOON + 5)
      // Archiving again keeps the first time.
      assert.equal((await archive('b', NOON + 9))?.archivedAt, NOON + 5)
      for (const limit of [1, 2, 10]) {
        assert.deepEqual(await list(false, limit), ['a', 'c'])
        assert.deepEqual(await list(true, limit), ['a', '-b', 'c'])
      }
      await append(storage(), env, event({ agentId: 'b', runId: 'b', time: NOON + 100 }))
      assert.deepEqual(await list(false), ['a', 'c'])
      await append(storage(), env, event({ agentId: 'b', runId: 'next', time: NOON + 6 }))
      assert.deepEqual(await list(false), ['a', 'b', 'c'])
      assert.equal((await archive('b', NOON + 9))?.archivedAt, NOON + 9)
      await archive('b', null)
      assert.deepEqual(await list(true), ['a', 'b', 'c'])
      assert.deepEqual(
        (await storage().listAgents(newId(), { limit: 10, after: null }, { withArchived: true })).rows,
        [],
      )
    })

    test('is archived although the clock of a run is ahead', async () => {
      const env = newId()
      await append(storage(), env, event({ agentId: 'a', time: NOON + 100 }))
      const { agentId: id } = await runOf(storage(), env)
      const shown = async () =>
        (await storage().listAgents(env, { limit: 10, after: null }, { withArchived: false })).rows.length
      const archived = await storage().changeAgent(env, id, { archivedAt: NOON }, [])
      assert.deepEqual((await storage().listAgents(env, { limit: 10, after: null }, { withArchived: true })).rows, [
        archived,
      ])
      assert.equal(await shown(), 0)
      await append(storage(), env, event({ agentId: 'a', runId: 'next', time: NOON + 101 }))
      assert.equal(await shown(), 1)
    })

    test('keeps each of several changes at the same time, and notes each once', async () => {
      const env = newId()
      await append(storage(), env, event({ agentId: 'a' }))
      const { agentId: id } = await runOf(storage(), env)
      const change = (to: AgentChange) => storage().changeAgent(env, id, to, [auditEntry(env)])
      for (let round = 1; round <= 10; round++) {
        const name = `name ${round}`
        const archivedAt = round % 2 === 1 ? NOON + round : null
        const same = [{ displayName: name }, { archivedAt }]
        await Promise.all([...same, ...same, ...same].map(change))
        const [row] = (await storage().listAgents(env, { limit: 1, after: null }, { withArchived: true })).rows
        assert.deepEqual([row?.displayName, row?.archivedAt], [name, archivedAt])
        const { rows } = await storage().listAudit(env, { limit: 100, after: null })
        assert.equal(rows.length, 2 * round)
      }
    })
  })
}
