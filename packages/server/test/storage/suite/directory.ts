import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { GivenPerson, GroupRoleEntries } from '../../../src/storage/directory.ts'
import { auditEntry } from './access.ts'
import { operatorToken } from './control.ts'
import { sharedStorage, type OpenStorage } from './open.ts'
import { newId, NOON } from './sample.ts'

const one = { offset: 0, limit: 10 }

export function directorySuite(open: OpenStorage) {
  describe('a directory', () => {
    const storage = sharedStorage(open)
    const template = () => auditEntry({ at: NOON })

    function person(given: Partial<GivenPerson> = {}): GivenPerson {
      const name = newId()
      const userName = `${name}@Example.com`
      return { id: newId(), userName, externalId: null, name, email: userName.toLowerCase(), active: true, ...given }
    }

    const save = (given: GivenPerson, roles: GroupRoleEntries = [], mode: 'create' | 'replace' = 'create') =>
      storage().saveDirectoryPerson(mode, given, roles, template())

    test('people are found by what identifies them, and names and addresses are theirs alone', async () => {
      const given = person({ externalId: newId() })
      assert.deepEqual(await save(given), { outcome: 'saved', id: given.id })
      for (const [field, value] of [
        ['id', given.id],
        ['userName', given.userName.toUpperCase()],
        ['externalId', given.externalId ?? ''],
        ['email', given.email],
      ] as const) {
        const { total, rows } = await storage().listDirectoryPeople({ field, value }, one)
        assert.deepEqual([total, rows[0]?.id, rows[0]?.active], [1, given.id, 1], field)
      }
      assert.equal((await save(person({ userName: given.userName }))).outcome, 'taken')
      assert.equal((await save(person({ email: given.email }))).outcome, 'taken')
      const other = person()
      await save(other)
      assert.equal((await save({ ...other, email: given.email }, [], 'replace')).outcome, 'taken')
      assert.equal((await save(person(), [], 'replace')).outcome, 'unknown')
      const { total } = await storage().listDirectoryPeople(null, { offset: 0, limit: 0 })
      assert.ok(total >= 2)
    })

    test('groups give and take roles, and deactivation ends all access at once', async () => {
      const home = newId()
      await storage().createWorkspace({ id: home, name: newId(), createdAt: NOON }, [])
      const [name, given] = [newId(), person()]
      const roles: GroupRoleEntries = [[name, [{ workspace: home, role: 'admin' }]]]
      await save(given, roles)
      const group = newId()
      const change = { add: [given.id], remove: [] }
      assert.equal(await storage().createDirectoryGroup(group, { name, ...change }, roles, template()), 'saved')
      assert.equal(
        await storage().createDirectoryGroup(newId(), { name: name.toUpperCase(), ...change }, roles, template()),
        'taken',
      )
      assert.equal(
        await storage().changeDirectoryGroup(group, { add: [newId()], remove: [] }, roles, template()),
        'no_member',
      )
      assert.equal(await storage().changeDirectoryGroup(newId(), change, roles, template()), 'unknown')
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
      const token = operatorToken({ creatorKind: 'operator', creatorId: given.id, creatorName: given.email })
      await storage().createOperatorToken(token, [])
      assert.ok(await storage().findSession(session.token))
      await save({ ...given, active: false }, roles, 'replace')
      assert.equal(await storage().findSession(session.token), null)
      assert.equal((await storage().findOperatorToken(token.id))?.revokedAt, NOON)
      assert.equal(await role(), null)
      assert.equal((await storage().findManagedPerson('none', given.email))?.active, 0)
      // A sign-in that was under way gets no session.
      await storage().createSignIn('session', { ...session, id: newId() })
      assert.equal(await storage().findSession(session.token), null)

      await save(given, roles, 'replace')
      assert.equal(await role(), 'admin')
      assert.equal(await storage().deleteDirectoryGroup(group, roles, template()), true)
      assert.equal(await role(), null)
      assert.equal(await storage().deleteDirectoryGroup(group, roles, template()), false)
      assert.equal(await storage().deleteDirectoryPerson(given.id, template()), true)
      assert.equal(await storage().deleteDirectoryPerson(given.id, template()), false)
      assert.equal(await storage().findOperatorByEmail(given.email), null)
    })
  })
}
