import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { AuditEntry, OperatorTokenRow } from '../../../../src/storage/people/operators.ts'
import { uuidv7At } from '../../../../src/storage/engine/uuid.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { newId, NOON } from '../sample.ts'

const all = { limit: 1000, after: null }
const alone = { now: NOON, alsoMade: false }
let count = 0

/** Entries in time order, like UUIDv7 ids. */
export function auditEntry(given: Partial<AuditEntry> = {}): AuditEntry {
  return {
    id: `${uuidv7At(NOON).slice(0, 24)}${String(++count).padStart(12, '0')}`,
    workspaceId: null,
    environmentId: null,
    at: NOON,
    actorKind: 'token',
    actorId: 'someone',
    actorName: 'Someone',
    action: 'thing.change',
    targetKind: 'thing',
    targetId: 'one',
    detail: '{}',
    requestId: newId(),
    address: '192.0.2.1',
    ...given,
  }
}

function operatorToken(given: Partial<OperatorTokenRow> = {}): OperatorTokenRow {
  const times = { createdAt: NOON, expiresAt: null, revokedAt: null, replacedBy: null, lastUsedAt: null }
  const made = { allowedAddresses: null, creatorKind: null, creatorId: null, creatorName: null }
  const who = { id: newId(), name: 'script', hash: 'cd'.repeat(32), workspaceId: null, role: 'owner' } as const
  return { ...who, ...made, ...times, ...given }
}

export function accessSuite(open: OpenStorage) {
  describe('operator tokens and the audit log', () => {
    const storage = sharedStorage(open)

    async function newWorkspace(audit: AuditEntry[] = []): Promise<string> {
      const id = newId()
      await storage().createWorkspace({ id, name: newId(), createdAt: NOON }, audit)
      return id
    }

    test('tokens that decide have the role in the workspace or everywhere, and are neither revoked nor expired', async () => {
      const [home, other] = [await newWorkspace(), await newWorkspace()]
      const before = await storage().countDecidingTokens(home, NOON)
      const rows = [
        operatorToken(),
        operatorToken({ workspaceId: home, role: 'approver' }),
        operatorToken({ workspaceId: home, role: 'viewer' }),
        operatorToken({ workspaceId: other, role: 'approver' }),
        operatorToken({ workspaceId: home, role: 'admin', expiresAt: NOON }),
        operatorToken({ workspaceId: home, role: 'admin', revokedAt: NOON }),
      ]
      for (const row of rows) await storage().createOperatorToken(row, [])
      assert.equal((await storage().countDecidingTokens(home, NOON)) - before, 2)
    })

    test('tokens are listed and revoked within their workspace, or among those for all workspaces', async () => {
      const [home, other] = [await newWorkspace(), await newWorkspace()]
      const rows = [operatorToken({ workspaceId: home, role: 'viewer' }), operatorToken({ workspaceId: other })]
      const everywhere = operatorToken()
      for (const row of [...rows, everywhere]) await storage().createOperatorToken(row, [])
      assert.deepEqual((await storage().listOperatorTokens(home, all)).rows, rows.slice(0, 1))
      assert.ok((await storage().listOperatorTokens(null, all)).rows.some(({ id }) => id === everywhere.id))
      assert.ok(!(await storage().listOperatorTokens(null, all)).rows.some(({ id }) => id === rows[0]?.id))
      const [row] = rows
      assert.ok(row)
      assert.equal(await storage().revokeOperatorToken(other, row.id, alone, []), null)
      assert.equal(await storage().revokeOperatorToken(null, row.id, alone, []), null)
      const revoked = { token: { ...row, revokedAt: NOON }, made: [] }
      assert.deepEqual(await storage().revokeOperatorToken(home, row.id, alone, []), revoked)
      assert.deepEqual(await storage().revokeOperatorToken(home, row.id, { ...alone, now: NOON + 1 }, []), revoked)
      assert.equal((await storage().revokeOperatorToken(null, everywhere.id, alone, []))?.token.revokedAt, NOON)
    })

    test('a rotation keeps what a token may do, and the old one ends when it says, or at its own expiry if that is earlier', async () => {
      const home = await newWorkspace()
      const creator = { creatorKind: null, creatorId: null, creatorName: null }
      const rotation = (given = {}) => ({
        id: newId(),
        hash: 'ef'.repeat(32),
        now: NOON,
        oldValidUntil: NOON + 50,
        expiresAt: undefined,
        ...creator,
        ...given,
      })
      for (const [expiresAt, given, until, expected] of [
        [null, undefined, NOON + 50, null],
        [NOON + 20, undefined, NOON + 20, NOON + 20],
        [NOON + 20, NOON + 90, NOON + 20, NOON + 90],
        [NOON + 90, null, NOON + 50, null],
      ] as const) {
        const allowedAddresses = ['192.0.2.0/24']
        const old = operatorToken({ workspaceId: home, role: 'admin', allowedAddresses, expiresAt, lastUsedAt: NOON })
        await storage().createOperatorToken(old, [])
        const asked = rotation({ expiresAt: given })
        const added = await storage().rotateOperatorToken(home, old.id, asked, [])
        const { id, hash } = asked
        const expectedRow = { ...old, id, hash, createdAt: NOON, expiresAt: expected, lastUsedAt: null }
        assert.deepEqual(added, expectedRow)
        assert.deepEqual(await storage().findOperatorToken(id), expectedRow)
        const left = await storage().findOperatorToken(old.id)
        assert.deepEqual([left?.expiresAt, left?.replacedBy, left?.revokedAt], [until, id, null])
        // A token can be rotated once, in its scope, and only while it is valid.
        assert.equal(await storage().rotateOperatorToken(home, old.id, rotation(), []), 'ended')
        assert.equal(await storage().rotateOperatorToken(null, id, rotation(), []), null)
        await storage().revokeOperatorToken(home, id, alone, [])
        assert.equal(await storage().rotateOperatorToken(home, id, rotation(), []), 'ended')
      }
      const expired = operatorToken({ expiresAt: NOON })
      await storage().createOperatorToken(expired, [])
      assert.equal(await storage().rotateOperatorToken(null, expired.id, rotation(), []), 'ended')
      // The caller has lost the role in the meantime.
      const [token, asker] = [operatorToken(), operatorToken({ revokedAt: NOON })]
      for (const row of [token, asker]) await storage().createOperatorToken(row, [])
      const by = { creatorKind: 'token', creatorId: asker.id, creatorName: asker.name }
      assert.equal(await storage().rotateOperatorToken(null, token.id, rotation(by), []), 'forbidden')
      assert.equal((await storage().findOperatorToken(token.id))?.replacedBy, null)
    })

    test('tokens that a revoked token made stay valid and are named, or end with it, each in the log of its workspace', async () => {
      const home = await newWorkspace()
      const madeBy = (maker: OperatorTokenRow, given: Partial<OperatorTokenRow> = {}) =>
        operatorToken({ creatorKind: 'token', creatorId: maker.id, creatorName: maker.name, ...given })
      const leaked = operatorToken()
      const child = madeBy(leaked)
      const grandchild = madeBy(child, { workspaceId: home, role: 'viewer' })
      const ended = [madeBy(leaked, { expiresAt: NOON + 1 }), madeBy(leaked)]
      // A person with the same id as the leaked token is not the token.
      const other = operatorToken({ creatorKind: 'operator', creatorId: leaked.id, creatorName: 'x' })
      for (const row of [leaked, child, grandchild, ...ended]) await storage().createOperatorToken(row, [])
      await storage().createOperatorToken({ ...other, creatorKind: null }, [])
      await storage().revokeOperatorToken(null, ended[1]?.id ?? '', { ...alone, now: NOON - 1 }, [])
      const now = NOON + 1
      const named = [child, grandchild].map(({ id }) => id).toSorted()
      const ids = (made: { id: string }[] | undefined) => made?.map(({ id }) => id)
      const kept = await storage().revokeOperatorToken(null, leaked.id, { now, alsoMade: false }, [])
      assert.deepEqual(ids(kept?.made), named)
      assert.deepEqual(
        kept?.made.map(({ revokedAt }) => revokedAt),
        [null, null],
      )
      assert.equal((await storage().findOperatorToken(child.id))?.revokedAt, null)
      const audit = [auditEntry({ action: 'operator_token.revoke', targetId: leaked.id })]
      const revoked = await storage().revokeOperatorToken(null, leaked.id, { now, alsoMade: true }, audit)
      assert.deepEqual(ids(revoked?.made), named)
      for (const id of named) assert.equal((await storage().findOperatorToken(id))?.revokedAt, now)
      assert.equal((await storage().findOperatorToken(other.id))?.revokedAt, null)
      const [entry] = (await storage().listAudit(home, all)).rows
      assert.deepEqual([entry?.targetId, entry?.detail], [grandchild.id, JSON.stringify({ madeBy: leaked.id })])
      assert.deepEqual((await storage().revokeOperatorToken(null, leaked.id, { now, alsoMade: true }, []))?.made, [])
    })

    test('every change is in the log as soon as it is stored, and an act that changes nothing is not', async () => {
      const workspaceId = newId()
      const entry = (action: string) => auditEntry({ workspaceId, action })
      const log = async () =>
        (await storage().listAudit(workspaceId, all)).rows.map(({ action }) => action).toReversed()
      const row = { id: workspaceId, name: newId(), createdAt: NOON }
      const environment = { id: newId(), workspaceId, name: 'production', createdAt: NOON }
      const unused = {
        allowedAddresses: null,
        revokedAt: null,
        lastUsedAt: null,
        expiresAt: null,
        requestsPerSecond: null,
        creatorKind: null,
        creatorId: null,
        createdAt: NOON,
      }
      const key = { id: newId(), environmentId: environment.id, name: 'k', hash: 'x', scopes: [], ...unused }
      const token = operatorToken({ workspaceId })
      await storage().createWorkspace(row, [entry('workspace')])
      await storage().createWorkspace({ ...row, id: newId() }, [entry('taken')])
      await storage().createEnvironment(environment, [entry('environment')])
      await storage().createEnvironment({ ...environment, id: newId() }, [entry('taken')])
      await storage().createApiKey(key, [entry('key')])
      await storage().createApiKey({ ...key, id: newId(), environmentId: newId() }, [entry('nowhere')])
      await storage().revokeApiKey(environment.id, key.id, NOON, [entry('revoke key')])
      await storage().revokeApiKey(environment.id, key.id, NOON, [entry('again')])
      await storage().createOperatorToken(token, [entry('token')])
      await storage().revokeOperatorToken(workspaceId, token.id, alone, [entry('revoke token')])
      await storage().revokeOperatorToken(workspaceId, token.id, alone, [entry('again')])
      assert.deepEqual(await log(), ['workspace', 'environment', 'key', 'revoke key', 'token', 'revoke token'])
    })

    test('the log lists the newest first, page by page, of one workspace or of all', async () => {
      const workspaceId = newId()
      const action = newId()
      const entries = Array.from({ length: 5 }, (_, at) => auditEntry({ workspaceId, action, at: NOON + at }))
      await storage().appendAudit([...entries, auditEntry({ action, at: NOON + 5 })])
      const newest = entries.toReversed()
      assert.deepEqual((await storage().listAudit(workspaceId, { limit: 2, after: null })).rows, newest.slice(0, 2))
      const after = newest[1]?.id ?? ''
      assert.deepEqual((await storage().listAudit(workspaceId, { limit: 9, after })).rows, newest.slice(2))
      const ofAll = (await storage().listAudit(null, { limit: 2, after: null }, { action })).rows
      assert.deepEqual(
        ofAll.map((entry) => entry.workspaceId),
        [null, workspaceId],
      )
    })

    test('each part of a filter narrows the log; a time range includes its start but not its end', async () => {
      const workspaceId = newId()
      const entries = [
        auditEntry({ workspaceId, action: 'a', actorId: 'x', targetKind: 'k', targetId: '1', at: NOON }),
        auditEntry({ workspaceId, action: 'b', actorId: 'x', targetKind: 'k', targetId: '2', at: NOON + 1 }),
        auditEntry({ workspaceId, action: 'b', actorId: 'y', targetKind: 'l', targetId: '1', at: NOON + 2 }),
      ]
      await storage().appendAudit(entries)
      const of = async (filter: Parameters<ReturnType<typeof storage>['listAudit']>[2]) =>
        (await storage().listAudit(workspaceId, all, filter)).rows.map(({ at }) => at - NOON).toReversed()
      assert.deepEqual(await of({}), [0, 1, 2])
      assert.deepEqual(await of({ action: 'b' }), [1, 2])
      assert.deepEqual(await of({ action: 'b', actorId: 'x' }), [1])
      assert.deepEqual(await of({ targetKind: 'k' }), [0, 1])
      assert.deepEqual(await of({ targetId: '1' }), [0, 2])
      assert.deepEqual(await of({ from: NOON + 1 }), [1, 2])
      assert.deepEqual(await of({ from: NOON, to: NOON + 2 }), [0, 1])
      assert.deepEqual(await of({ actorId: 'z' }), [])
    })

    test('workspaces are listed by ids, also when the ids are many or unknown', async () => {
      const ids = []
      for (let made = 0; made < 3; made++) ids.push(await newWorkspace())
      const sorted = ids.toSorted()
      const within = [...ids, ...Array.from({ length: 120 }, newId)]
      const listed = async (page: { limit: number; after: string | null }) =>
        (await storage().listWorkspaces(page, within)).rows.map(({ id }) => id)
      assert.deepEqual(await listed(all), sorted)
      assert.deepEqual(await listed({ limit: 2, after: null }), sorted.slice(0, 2))
      assert.deepEqual(await listed({ limit: 2, after: sorted[1] ?? '' }), sorted.slice(2))
      assert.deepEqual((await storage().listWorkspaces(all, [])).rows, [])
    })
  })
}
