import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { GivenPerson, GroupRoleEntries, PersonChange } from '../../../../src/storage/people/operators.ts'
import { auditEntry } from './access.ts'
import { operatorToken } from '../tenants/control.ts'
import { changeShared, sharedStorage, type OpenStorage } from '../open.ts'
import { invitation } from './operators.ts'
import { newId, NOON } from '../sample.ts'

const one = { offset: 0, limit: 10 }

export function directorySuite(open: OpenStorage) {
  describe('a directory', () => {
    const storage = sharedStorage(open)
    const template = () => auditEntry({ at: NOON })

    function person(given: Partial<GivenPerson> = {}) {
      const name = newId()
      const userName = `${name}@Example.com`
      const email = userName.toLowerCase()
      return { id: newId(), userName, externalId: null, name, email, active: true, ...given }
    }

    const create = ({ id, ...given }: ReturnType<typeof person>, roles: GroupRoleEntries = []) =>
      storage().createDirectoryPerson(id, given, roles, template())
    const change = (id: string, given: PersonChange, roles: GroupRoleEntries = []) =>
      storage().changeDirectoryPerson(id, given, roles, template())

    test('people are found by what identifies them, and names and addresses are theirs alone', async () => {
      const given = person({ externalId: newId() })
      assert.deepEqual(await create(given), { outcome: 'saved', id: given.id })
      for (const [field, value] of [
        ['id', given.id],
        ['userName', given.userName.toUpperCase()],
        ['externalId', given.externalId ?? ''],
        ['email', given.email],
      ] as const) {
        const { total, rows } = await storage().listDirectoryPeople({ field, value }, one)
        assert.deepEqual([total, rows[0]?.id, rows[0]?.active], [1, given.id, 1], field)
      }
      assert.equal((await create(person({ userName: given.userName }))).outcome, 'taken')
      assert.equal((await create(person({ email: given.email }))).outcome, 'taken')
      const other = person()
      await create(other)
      assert.equal((await change(other.id, { email: given.email })).outcome, 'taken')
      assert.equal((await change(newId(), {})).outcome, 'unknown')
      const { total } = await storage().listDirectoryPeople(null, { offset: 0, limit: 0 })
      assert.ok(total >= 2)
    })

    test('a change touches only what it names', async () => {
      const given = person({ externalId: newId() })
      await create(given)
      const read = async () => (await storage().listDirectoryPeople({ field: 'id', value: given.id }, one)).rows[0]
      await Promise.all([
        change(given.id, { name: 'Ann' }),
        change(given.id, { active: false }),
        change(given.id, { externalId: null }),
      ])
      const { name, active, externalId, email, userName } = (await read()) ?? {}
      assert.deepEqual([name, active, externalId, email, userName], ['Ann', 0, null, given.email, given.userName])
      const moved = { email: `${newId()}@example.com`, name: null, active: undefined }
      await change(given.id, { ...moved, userName: 'ann' })
      const next = await read()
      assert.deepEqual([next?.name, next?.active, next?.email], ['ann', 0, moved.email])
    })

    test('groups give and take roles, and deactivation ends all access at once', async () => {
      const home = newId()
      await storage().createWorkspace({ id: home, name: newId(), createdAt: NOON }, [])
      const [name, given] = [newId(), person()]
      const roles: GroupRoleEntries = [[name, [{ workspace: home, role: 'admin' }]]]
      await create(given, roles)
      const group = newId()
      const members = { add: [given.id], remove: [] }
      assert.equal(await storage().createDirectoryGroup(group, { name, ...members }, roles, template()), 'saved')
      assert.equal(
        await storage().createDirectoryGroup(newId(), { name: name.toUpperCase(), ...members }, roles, template()),
        'taken',
      )
      assert.equal(
        await storage().changeDirectoryGroup(group, { add: [newId()], remove: [] }, roles, template()),
        'no_member',
      )
      assert.equal(await storage().changeDirectoryGroup(newId(), members, roles, template()), 'unknown')
      const stranger = { name: newId(), add: [newId()], remove: [] }
      assert.equal(await storage().createDirectoryGroup(newId(), stranger, roles, template()), 'no_member')
      const left = await storage().listDirectoryGroups({ field: 'displayName', value: stranger.name }, one, false)
      assert.equal(left.total, 0)
      const role = async () => (await storage().findOperator(home, given.id))?.role ?? null
      assert.equal(await role(), 'admin')
      assert.deepEqual((await storage().findManagedPerson('none', given.email))?.groups, [name])
      const [listed] = (await storage().listDirectoryGroups({ field: 'displayName', value: name }, one, true)).rows
      assert.deepEqual(listed?.members, [{ id: given.id, name: given.name }])

      const session = {
        id: newId(),
        userId: given.id,
        token: newId(),
        expiresAt: NOON + 1,
        createdAt: NOON,
        updatedAt: NOON,
      }
      await storage().createSignIn('session', session)
      const creator = { creatorKind: 'operator', creatorId: given.id, creatorName: given.email } as const
      const made = { ...creator, workspaceId: home, role: 'admin' } as const
      const token = operatorToken(made)
      assert.equal(await storage().createOperatorToken(operatorToken({ ...made, role: 'owner' }), []), 'forbidden')
      assert.equal(await storage().createOperatorToken(token, []), 'created')
      const byToken = { creatorKind: 'token', creatorId: token.id, creatorName: token.name } as const
      const second = operatorToken({ ...made, ...byToken, role: 'viewer' })
      assert.equal(await storage().createOperatorToken(second, []), 'created')
      assert.ok(await storage().findSession(session.token))
      await change(given.id, { active: false }, roles)
      assert.equal((await storage().findOperatorToken(second.id))?.revokedAt, NOON)
      assert.equal(await storage().findSession(session.token), null)
      assert.equal((await storage().findOperatorToken(token.id))?.revokedAt, NOON)
      // A token whose creation waited for the deactivation is not created.
      const late = operatorToken(made)
      assert.equal(await storage().createOperatorToken(late, []), 'forbidden')
      assert.equal(await storage().findOperatorToken(late.id), null)
      assert.equal(await role(), null)
      assert.equal((await storage().findManagedPerson('none', given.email))?.active, 0)
      // A sign-in that began before gets no session.
      await storage().createSignIn('session', { ...session, id: newId() })
      assert.equal(await storage().findSession(session.token), null)

      await change(given.id, { active: true }, roles)
      assert.equal(await role(), 'admin')
      assert.equal(await storage().deleteDirectoryGroup(group, roles, template()), true)
      assert.equal(await role(), null)
      assert.equal(await storage().deleteDirectoryGroup(group, roles, template()), false)
      assert.equal(await storage().deleteDirectoryPerson(given.id, template()), true)
      assert.equal(await storage().deleteDirectoryPerson(given.id, template()), false)
      assert.equal(await storage().findOperatorByEmail(given.email), null)
    })

    const session = (userId: string) => {
      const times = { expiresAt: NOON + 1, createdAt: NOON, updatedAt: NOON }
      return { id: newId(), userId, token: newId(), ...times }
    }

    test('a sign-in that began before the deactivation gives no role, and leaves no session', async () => {
      const given = person()
      await create(given)
      await change(given.id, { active: false })
      const role = [{ workspace: null, role: 'admin' }] as const
      assert.equal(await storage().applyGroupRoles(given.id, role, auditEntry()), 'deactivated')
      assert.equal((await storage().findOperator(null, given.id))?.role, null)
      const late = session(given.id)
      await storage().createSignIn('session', late)
      await change(given.id, { active: true })
      assert.equal(await storage().findSession(late.token), null)
      assert.notEqual(await storage().applyGroupRoles(given.id, role, auditEntry()), 'deactivated')
      assert.equal((await storage().findOperator(null, given.id))?.role, 'admin')
    })

    test('a damaged role of one member stays refused and is reported, and the others of the group go on', async () => {
      const [group, name, home] = [newId(), newId(), newId()]
      await storage().createWorkspace({ id: home, name: home, createdAt: NOON }, [])
      const roles: GroupRoleEntries = [
        [
          name,
          [
            { workspace: null, role: 'viewer' },
            { workspace: home, role: 'admin' },
          ],
        ],
      ]
      const [ill, well] = [person(), person()]
      for (const one of [ill, well]) await create(one, roles)
      const members = { members: [ill.id, well.id], add: [], remove: [] }
      assert.equal(await storage().createDirectoryGroup(group, { name, ...members }, roles, template()), 'saved')
      const roleAt = async (workspaceId: string | null, id: string) =>
        (await storage().findOperator(workspaceId, id))?.role ?? null
      assert.deepEqual([await roleAt(home, ill.id), await roleAt(home, well.id)], ['admin', 'admin'])
      await changeShared(
        open,
        "UPDATE operator_roles SET role = 'owner' WHERE scope = 'installation' AND operator_id = ?",
        ill.id,
      )
      const gone = { members: [], add: [], remove: [] }
      assert.equal(await storage().changeDirectoryGroup(group, gone, roles, template()), 'saved')
      assert.deepEqual([await roleAt(home, ill.id), await roleAt(home, well.id)], [null, null])
      assert.equal(await roleAt(null, well.id), null)
      const said = (await storage().listAudit(null, { limit: 100, after: null })).rows
        .filter(({ targetId }) => targetId === ill.id)
        .map(({ detail }) => JSON.parse(detail) as { damaged?: boolean })
      assert.ok(said.some(({ damaged }) => damaged === true))
      // The person cannot sign in until somebody assigns the role again.
      await assert.rejects(storage().applyGroupRoles(ill.id, [], auditEntry()), { code: 'configuration_damaged' })
    })

    test('a deactivated person gets no role, and neither owns nor decides', async () => {
      const home = newId()
      await storage().createWorkspace({ id: home, name: newId(), createdAt: NOON }, [])
      const [out, owner] = [person(), person()]
      for (const one of [out, owner]) {
        await create(one)
        await accept(home, one)
      }
      const set = (id: string, role: 'owner' | null) => storage().changeOperatorRole(home, id, role, NOON, [])
      await change(out.id, { active: false })
      assert.equal((await storage().findOperator(null, out.id))?.deactivated, 1)
      // A row as a former build wrote it.
      const former = `INSERT INTO operator_roles (scope, operator_id, role, created_at) VALUES (?, '${out.id}', 'owner', 1)`
      await changeShared(open, former, home)
      assert.equal(await storage().changeOperatorRole(home, out.id, 'viewer', NOON, []), 'deactivated')
      assert.equal(await set(out.id, 'owner'), 'deactivated')
      assert.equal(await set(owner.id, null), 'last_owner')
      assert.equal(await storage().deleteOperator(owner.id, NOON, []), 'last_owner')
      const { rows } = await storage().listDeciders(home, 1_000)
      assert.deepEqual([rows.some(({ id }) => id === owner.id), rows.some(({ id }) => id === out.id)], [true, false])
      assert.equal(await set(out.id, null), 'changed')
      const again = invitation({ workspaceId: home, email: out.email })
      await storage().createInvitation(again, [])
      assert.equal(await storage().acceptInvitation(again.id, { id: out.id }, NOON, []), 'gone')
    })

    async function accept(workspaceId: string, { id, email }: { id: string; email: string }) {
      const row = invitation({ workspaceId, email, role: 'owner' })
      await storage().createInvitation(row, [])
      assert.equal(await storage().acceptInvitation(row.id, { id }, NOON, []), 'accepted')
    }

    test('deletion and deactivation end the invitations to the address and by the person', async () => {
      for (const end of ['delete', 'deactivate', 'by hand'] as const) {
        const given = person()
        await create(given)
        const inviter = { kind: 'operator', id: given.id } as const
        await storage().applyGroupRoles(given.id, [{ workspace: null, role: 'admin' }], auditEntry())
        const [to, by, other] = [invitation({ email: given.email }), invitation({ inviter }), invitation()]
        to.workspaceId = newId()
        for (const one of [to, by, other]) await storage().createInvitation(one, [])
        assert.equal((await storage().findInvitationsFor(by.email, NOON)).length, 1)
        if (end === 'delete') await storage().deleteDirectoryPerson(given.id, template())
        else if (end === 'by hand') assert.equal(await storage().deleteOperator(given.id, NOON, []), 'changed')
        else await change(given.id, { active: false })
        for (const { email } of [to, by]) assert.deepEqual(await storage().findInvitationsFor(email, NOON), [], end)
        assert.equal((await storage().findInvitationsFor(other.email, NOON)).length, 1)
        if (end === 'deactivate') continue
        const proven = { ...given, emailVerified: 1, createdAt: NOON, password: null }
        assert.equal(await storage().acceptInvitation(to.id, proven, NOON, []), 'gone')
        assert.equal(await storage().createOperator(proven, null, []), 'ended')
      }
    })
  })
}
