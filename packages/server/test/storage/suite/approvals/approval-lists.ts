import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ApprovalFilter, ApprovalPage, ApprovalRow } from '../../../../src/storage/approvals/approvals.ts'
import { ask, BEGINNING, decision, HASH, MINUTE } from './approval-sample.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { append, event, newId, NOON, runOf } from '../sample.ts'

const ids = (rows: { id: string }[]) => rows.map(({ id }) => id)
const ample = { limit: 1_000, after: null }

export function approvalListsSuite(open: OpenStorage) {
  describe('lists of approvals', () => {
    const storage = sharedStorage(open)

    /** Twelve approvals in all four states, with pairs of equal times. The last created one expires first. */
    async function twelve() {
      const env = newId()
      const rows: ApprovalRow[] = []
      for (let n = 0; n < 12; n++) {
        const createdAt = NOON + Math.floor(n / 2)
        const about = {
          toolName: `tool ${n % 2}`,
          inputHash: n % 3 === 0 ? 'cd'.repeat(16) : HASH,
          agentId: n % 4 === 0 ? null : `agent ${n % 4}`,
          policyId: n % 2 === 0 ? null : `policy ${n % 3}`,
          runId: n % 3 === 2 ? null : `run ${n % 3}`,
        }
        const expiresAt = NOON + (n < 3 ? 1 : 2 * MINUTE - Math.floor(n / 2))
        rows.push(await ask(storage(), env, { createdAt, expiresAt, ...about }))
      }
      await storage().expireApprovals(env, NOON + 1, 3)
      const decide = (n: number, status: 'APPROVED' | 'REJECTED') =>
        storage().decideApprovals(env, [rows[n]?.id ?? ''], decision({ status }), [])
      for (const n of [3, 4]) await decide(n, 'APPROVED')
      await decide(5, 'REJECTED')
      const stored = await storage().findApprovals(env, ids(rows))
      return { env, rows: rows.map(({ id }) => stored.find((row) => row.id === id) as ApprovalRow) }
    }

    async function walk(env: string, filter: ApprovalFilter, limit: number): Promise<ApprovalRow[]> {
      const walked: ApprovalRow[] = []
      for (let after: ApprovalPage['after'] = null; ;) {
        const page: ApprovalRow[] = (await storage().listApprovals(env, filter, { limit, after })).rows
        walked.push(...page)
        const last = page.at(-1)
        if (last === undefined || page.length < limit) return walked
        after = { time: filter.status === 'PENDING' ? last.expiresAt : last.createdAt, id: last.id }
      }
    }

    test('newest first, pending ones by deadline; each page continues where the last ended', async () => {
      const { env, rows } = await twelve()
      const newest = rows.toSorted((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1))
      const deadlines = rows.filter(({ status }) => status === 'PENDING')
      deadlines.sort((a, b) => a.expiresAt - b.expiresAt || (a.id < b.id ? -1 : 1))
      assert.equal(deadlines.length, 6)
      for (const limit of [1, 2, 5, 12, 100]) {
        assert.deepEqual(await walk(env, {}, limit), newest)
        assert.deepEqual(await walk(env, { status: 'PENDING' }, limit), deadlines)
      }
    })

    test('can be filtered by every field, alone and together', async () => {
      const { env, rows } = await twelve()
      const filters: [ApprovalFilter, (row: ApprovalRow) => boolean][] = [
        [{ status: 'EXPIRED' }, ({ status }) => status === 'EXPIRED'],
        [{ status: 'APPROVED' }, ({ status }) => status === 'APPROVED'],
        [{ toolName: 'tool 1' }, ({ toolName }) => toolName === 'tool 1'],
        [{ inputHash: HASH }, ({ inputHash }) => inputHash === HASH],
        [{ agentId: 'agent 1' }, ({ agentId }) => agentId === 'agent 1'],
        [{ policyId: 'policy 1' }, ({ policyId }) => policyId === 'policy 1'],
        [{ runId: 'run 0' }, ({ runId }) => runId === 'run 0'],
        [
          { status: 'PENDING', toolName: 'tool 1', inputHash: HASH },
          (row) => row.status === 'PENDING' && row.toolName === 'tool 1' && row.inputHash === HASH,
        ],
        [{ runId: 'unknown' }, () => false],
        // Requests without an agent count for their client. A client id is not an agent name.
        [{ agentId: 'client' }, () => false],
      ]
      for (const [filter, fits] of filters) {
        const expected = rows.filter(fits).map(({ id }) => id)
        for (const limit of [1, 3, 100]) {
          assert.deepEqual(ids(await walk(env, filter, limit)).toSorted(), expected.toSorted(), JSON.stringify(filter))
        }
      }
    })

    test('contain one environment only', async () => {
      const { rows } = await twelve()
      const other = newId()
      assert.deepEqual((await storage().listApprovals(other, {}, ample)).rows, [])
      assert.deepEqual(await storage().findApprovals(other, ids(rows)), [])
      assert.deepEqual((await storage().listApprovalsOfRun(other, 'run 0', 10)).rows, [])
      assert.deepEqual((await storage().listChangedApprovals(other, BEGINNING, 10)).rows, [])
      assert.deepEqual(await storage().groupApprovals(other, NOON, { requests: 10, groups: 10 }), [])
    })

    test('many are found by their ids at once; unknown and repeated ids are skipped', async () => {
      const env = newId()
      const rows = await Promise.all(Array.from({ length: 120 }, () => ask(storage(), env)))
      const wanted = [...ids(rows), newId(), ...ids(rows.slice(0, 7))]
      const found = await storage().findApprovals(env, wanted)
      assert.deepEqual(ids(found).toSorted(), ids(rows).toSorted())
      assert.deepEqual(await storage().findApprovals(env, []), [])
    })

    test('those of a run come oldest first, bounded', async () => {
      const { env, rows } = await twelve()
      const expected = rows.filter(({ runId }) => runId === 'run 1')
      assert.deepEqual((await storage().listApprovalsOfRun(env, 'run 1', 10)).rows, expected)
      assert.deepEqual((await storage().listApprovalsOfRun(env, 'run 1', 2)).rows, expected.slice(0, 2))
    })

    test('groups count pending, not overdue requests for one tool and input, oldest deadline first', async () => {
      const env = newId()
      const put = (n: number, given: object) => ask(storage(), env, { expiresAt: NOON + n, ...given })
      await put(9, { toolName: 'b', runId: 'r1', agentId: 'a1', policyId: 'p1', createdAt: NOON + 5 })
      await put(4, { toolName: 'a', runId: 'r1', agentId: 'a1' })
      await put(3, { toolName: 'b', runId: 'r1', clientId: 'c2', policyId: 'p2', createdAt: NOON + 2 })
      await put(7, { toolName: 'b', inputHash: 'cd'.repeat(16) })
      await put(1, { toolName: 'late' })
      const decided = await put(8, { toolName: 'a' })
      await storage().decideApprovals(env, [decided.id], decision({ now: NOON }), [])
      const group = { inputHash: HASH, runs: 1, policies: 0, requests: 1, agents: 1, oldestCreatedAt: NOON }
      const groups = [
        {
          ...group,
          toolName: 'b',
          requests: 2,
          agents: 2,
          policies: 2,
          oldestExpiresAt: NOON + 3,
          oldestCreatedAt: NOON + 2,
        },
        { ...group, toolName: 'a', oldestExpiresAt: NOON + 4 },
        { ...group, toolName: 'b', inputHash: 'cd'.repeat(16), runs: 0, oldestExpiresAt: NOON + 7 },
      ]
      const bounds = { requests: 100, groups: 100 }
      assert.deepEqual(await storage().groupApprovals(env, NOON + 1, bounds), groups)
      assert.deepEqual(await storage().groupApprovals(env, NOON + 1, { ...bounds, groups: 2 }), groups.slice(0, 2))
      const [first] = await storage().groupApprovals(env, NOON + 1, { ...bounds, requests: 1 })
      assert.equal(first?.requests, 1)
    })

    test('requests are counted by agent, else by client, since a time and up to a limit', async () => {
      const env = newId()
      for (const minutes of [0, 1, 2, 3]) {
        const createdAt = NOON + minutes * MINUTE
        await ask(storage(), env, { createdAt, agentId: 'a', clientId: 'x' })
        if (minutes > 1) await ask(storage(), env, { createdAt, clientId: 'a' })
      }
      const requesters = [
        { agentId: 'a', clientId: 'whoever' },
        { agentId: null, clientId: 'a' },
        { agentId: null, clientId: 'x' },
      ]
      const count = (since: number, most = 100) => storage().countRequests(env, requesters, since, most)
      assert.deepEqual(await count(NOON), [4, 2, 0])
      assert.deepEqual(await count(NOON + 3 * MINUTE), [1, 1, 0])
      assert.deepEqual(await count(NOON + 3 * MINUTE + 1), [0, 0, 0])
      assert.deepEqual(await count(NOON, 3), [3, 2, 0])
    })

    test('each change of an environment gives it a larger revision, and the changed row is listed under it', async () => {
      const [env, other] = [newId(), newId()]
      const revision = async (id: string) => (await storage().approvalRevisions([id]))[0]?.revision ?? -1
      assert.deepEqual(await storage().approvalRevisions([env, other]), [
        { environmentId: env, revision: 0, removedRevision: 0 },
        { environmentId: other, revision: 0, removedRevision: 0 },
      ])
      const [one, two] = [await ask(storage(), env), await ask(storage(), env)]
      const between = await revision(env)
      assert.ok(one.revision < two.revision && two.revision === between)
      await storage().decideApprovals(env, [one.id], decision(), [])
      await storage().expireApprovals(env, NOON + 5 * MINUTE, 10)
      const changed = (await storage().listChangedApprovals(env, { ...BEGINNING, revision: between + 1 }, 10)).rows
      assert.deepEqual(
        changed.map(({ id, status }) => [id, status]),
        [
          [one.id, 'APPROVED'],
          [two.id, 'EXPIRED'],
        ],
      )
      assert.ok((await revision(env)) >= (changed[1]?.revision ?? Infinity))
      assert.equal(await revision(other), 0)
      const last = changed[1]
      assert.ok(last)
      assert.deepEqual((await storage().listChangedApprovals(env, last, 10)).rows, [])
    })

    test('revisions of many environments are read at once, in the order of the ids', async () => {
      const envs = Array.from({ length: 70 }, newId)
      for (const env of envs.slice(0, 3)) await ask(storage(), env)
      const told = await storage().approvalRevisions(envs)
      assert.deepEqual(
        told.map(({ environmentId }) => environmentId),
        envs,
      )
      assert.deepEqual(
        told.map(({ revision }) => revision > 0),
        envs.map((_, n) => n < 3),
      )
    })
  })

  describe('tool events of a run', () => {
    const storage = sharedStorage(open)

    test('give the approval fields of tool calls and policy decisions, in timeline order', async () => {
      const env = newId()
      const call = (time: number, payload: object, eventType = 'TOOL_CALL') =>
        event({ eventId: `e${time}`, eventType, time: NOON + time, payload: JSON.stringify(payload) })
      await append(
        storage(),
        env,
        call(4, { toolName: 'pay', inputHash: 'AB', approvalId: 'A1', output: null }),
        call(3, { toolName: 'pay', error: 'refused', output: 'x' }),
        call(2, { toolName: 7, inputHash: ['ab'], approvalId: null, error: null }),
        call(1, { toolName: 'pay', action: 'REQUIRE_APPROVAL', inputHash: 'ab' }, 'POLICY_DECISION'),
        call(0, { toolName: 'pay', approvalId: 'A1' }, 'LLM_CALL'),
      )
      const run = (await runOf(storage(), env)).id
      const page = { limit: 10, pageBytes: 1e9, after: null }
      const { rows, more } = await storage().listToolEvents(env, run, page)
      const nothing = {
        toolName: null,
        inputHash: null,
        approvalId: null,
        action: null,
        outcome: 'unknown',
        neverRan: false,
      }
      const about = (time: number) => ({ label: 'Thinks', time: NOON + time, receivedAt: NOON, eventId: `e${time}` })
      assert.equal(more, false)
      assert.deepEqual(
        rows.map(({ seq: _seq, ...row }) => row),
        [
          {
            ...nothing,
            ...about(1),
            kind: 'POLICY_DECISION',
            toolName: 'pay',
            inputHash: 'ab',
            action: 'REQUIRE_APPROVAL',
          },
          { ...nothing, ...about(2), kind: 'TOOL_CALL' },
          { ...nothing, ...about(3), kind: 'TOOL_CALL', toolName: 'pay', outcome: 'error' },
          {
            ...nothing,
            ...about(4),
            kind: 'TOOL_CALL',
            toolName: 'pay',
            inputHash: 'ab',
            approvalId: 'a1',
            outcome: 'output',
          },
        ],
      )
      const first = await storage().listToolEvents(env, run, { ...page, limit: 3 })
      assert.deepEqual([first.rows.length, first.more], [3, true])
      const last = first.rows.at(-1)
      assert.ok(last)
      const rest = await storage().listToolEvents(env, run, { ...page, after: { time: last.time, seq: last.seq } })
      assert.deepEqual(rest, { rows: rows.slice(3), more: false })
      const small = await storage().listToolEvents(env, run, { ...page, pageBytes: 1 })
      assert.deepEqual([small.rows.length, small.more], [1, true])
      assert.deepEqual((await storage().listToolEvents(newId(), run, page)).rows, [])
    })
  })
}
