import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type {
  GrantedRole,
  InvitationRow,
  NewOperator,
  SignInCondition,
} from '../../../../src/storage/people/operators.ts'
import { auditEntry } from './access.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { newId, NOON } from '../sample.ts'

const all = { limit: 1000, after: null }
const DAY = 86_400_000

export function invitation(given: Partial<InvitationRow> = {}): InvitationRow {
  const times = { createdAt: NOON, expiresAt: NOON + DAY, endedAt: null }
  const email = `${newId()}@example.com`
  return {
    id: newId(),
    hash: newId(),
    email,
    workspaceId: null,
    role: 'viewer',
    invitedBy: 'boss',
    inviter: null,
    ...times,
    ...given,
  }
}

export function person(email: string, given: Partial<NewOperator> = {}): NewOperator {
  const password = { accountId: newId(), hash: 'phc' }
  return { id: newId(), name: 'Ann', email, emailVerified: 0, createdAt: NOON, password, ...given }
}

const is = (field: string, value: string | number): SignInCondition => ({ field, operator: 'eq', value })

export function operatorsSuite(open: OpenStorage) {
  describe('people', () => {
    const storage = sharedStorage(open)

    async function newWorkspace(): Promise<string> {
      const id = newId()
      await storage().createWorkspace({ id, name: newId(), createdAt: NOON }, [])
      return id
    }

    async function member(workspaceId: string | null, role: InvitationRow['role']): Promise<NewOperator> {
      const invited = invitation({ workspaceId, role })
      const operator = person(invited.email)
      assert.equal(await storage().createInvitation(invited, []), 'created')
      assert.equal(await storage().acceptInvitation(invited.id, operator, NOON, []), 'accepted')
      return operator
    }

    const session = (operatorId: string, given: object = {}) => ({
      id: newId(),
      userId: operatorId,
      token: newId(),
      ipAddress: '192.0.2.1',
      userAgent: 'a browser',
      createdAt: NOON,
      updatedAt: NOON,
      expiresAt: NOON + DAY,
      ...given,
    })

    test('an invitation creates one person with its role, also in a race', async () => {
      const workspaceId = await newWorkspace()
      const invited = invitation({ workspaceId, role: 'approver' })
      await storage().createInvitation(invited, [])
      assert.deepEqual(await storage().findInvitation(invited.id, NOON), {
        ...invited,
        createsAccount: true,
        operator: null,
      })
      const racers = Array.from({ length: 6 }, () => person(invited.email))
      const outcomes = await Promise.all(
        racers.map((racer) => storage().acceptInvitation(invited.id, racer, NOON, [auditEntry({ workspaceId })])),
      )
      assert.deepEqual(outcomes.toSorted(), ['accepted', 'gone', 'gone', 'gone', 'gone', 'gone'])
      const winner = racers[outcomes.indexOf('accepted')]
      const members = (await storage().listOperators(workspaceId, all)).rows
      assert.deepEqual(
        members.map(({ id, email, role, twoFactor, lastSignInAt }) => ({ id, email, role, twoFactor, lastSignInAt })),
        [{ id: winner?.id, email: invited.email, role: 'approver', twoFactor: 0, lastSignInAt: null }],
      )
      assert.equal((await storage().listAudit(workspaceId, all)).rows.length, 1)
      assert.equal(await storage().readPassword(winner?.id ?? ''), 'phc')
    })

    test('those who decide have the role in the workspace or everywhere', async () => {
      const workspaceId = await newWorkspace()
      const everywhere = await member(null, 'owner')
      const approver = await member(workspaceId, 'approver')
      const admin = await member(workspaceId, 'admin')
      const others = [await member(workspaceId, 'viewer'), await member(await newWorkspace(), 'owner')]
      const { rows, more } = await storage().listDeciders(workspaceId, 1_000)
      const ids = new Set(rows.map(({ id }) => id))
      assert.equal(more, false)
      for (const { id } of [everywhere, approver, admin]) assert.ok(ids.has(id))
      for (const { id } of others) assert.ok(!ids.has(id))
      assert.deepEqual(
        rows.find(({ id }) => id === admin.id),
        { id: admin.id, email: admin.email },
      )
      const page = await storage().listDeciders(workspaceId, 2)
      assert.deepEqual([page.rows, page.more], [rows.slice(0, 2), true])
    })

    test('an invitation ends with who made it, and changes no role', async () => {
      const workspaceId = await newWorkspace()
      const owner = await member(workspaceId, 'owner')
      const inviter = { kind: 'operator', id: owner.id } as const
      const [first, late] = [invitation({ workspaceId, role: 'owner', inviter }), invitation({ workspaceId, inviter })]
      for (const row of [first, late]) await storage().createInvitation(row, [])
      assert.equal((await storage().findInvitation(first.id, NOON))?.createsAccount, false)
      const stranger = person(first.email)
      assert.equal(await storage().acceptInvitation(first.id, stranger, NOON, []), 'gone', 'nobody proved the address')
      const proven = person(first.email, { emailVerified: 1 })
      assert.equal(await storage().acceptInvitation(first.id, proven, NOON, []), 'accepted')
      assert.equal((await storage().findInvitationsFor(late.email, NOON)).length, 1)
      assert.equal(await storage().changeOperatorRole(workspaceId, owner.id, null, NOON, []), 'changed')
      assert.equal(await storage().findInvitation(late.id, NOON), null)
      assert.deepEqual(await storage().findInvitationsFor(late.email, NOON), [])
      assert.equal(await storage().acceptInvitation(late.id, person(late.email), NOON, []), 'gone')

      // This link was made before the person became an owner.
      const other = await member(null, 'viewer')
      const old = invitation({ workspaceId, role: 'viewer', email: other.email })
      const newer = invitation({ workspaceId, role: 'owner', email: other.email })
      await storage().createInvitation(newer, [])
      assert.equal(await storage().acceptInvitation(newer.id, { id: other.id }, NOON, []), 'accepted')
      assert.equal(await storage().createInvitation(old, []), 'member')
      assert.equal((await storage().findOperator(workspaceId, other.id))?.role, 'owner')
    })

    test('an invitation is invalid when expired, withdrawn or replaced, and valid only for its own address', async () => {
      const invited = invitation()
      await storage().createInvitation(invited, [])
      const wrong = person('somebody.else@example.com')
      assert.equal(await storage().acceptInvitation(invited.id, wrong, NOON, []), 'changed')
      assert.equal(await storage().acceptInvitation(invited.id, { id: newId() }, NOON, []), 'changed')
      const late = person(invited.email)
      assert.equal(await storage().acceptInvitation(invited.id, late, NOON + DAY, []), 'gone')
      assert.equal(await storage().acceptInvitation(newId(), late, NOON, []), 'gone')
      const again = invitation({ email: invited.email, role: 'admin' })
      await storage().createInvitation(again, [])
      assert.equal(await storage().acceptInvitation(invited.id, late, NOON, []), 'gone')
      assert.deepEqual(await storage().findInvitationsFor(invited.email, NOON), [again])
      assert.deepEqual(await storage().findInvitationsFor(invited.email, NOON + DAY), [])
      assert.equal(await storage().revokeInvitation(await newWorkspace(), again.id, NOON, []), null)
      assert.equal((await storage().revokeInvitation(null, again.id, NOON, []))?.endedAt, NOON)
      assert.equal(await storage().revokeInvitation(null, again.id, NOON, []), null)
      assert.equal(await storage().acceptInvitation(again.id, late, NOON, []), 'gone')
      assert.equal(await storage().findOperatorByEmail(invited.email), null)
    })

    test('pending invitations are listed in their scope; a member cannot be invited', async () => {
      const workspaceId = await newWorkspace()
      const rows = [invitation({ workspaceId }), invitation({ workspaceId })]
      for (const row of rows) await storage().createInvitation(row, [])
      const sorted = rows.toSorted((a, b) => (a.id < b.id ? -1 : 1))
      assert.deepEqual(
        (await storage().listInvitations(workspaceId, { limit: 1, after: null })).rows,
        sorted.slice(0, 1),
      )
      const after = sorted[0]?.id ?? ''
      assert.deepEqual((await storage().listInvitations(workspaceId, { limit: 9, after })).rows, sorted.slice(1))
      const { email } = await member(workspaceId, 'viewer')
      assert.equal(await storage().createInvitation(invitation({ workspaceId, email }), []), 'member')
      assert.equal(await storage().createInvitation(invitation({ email }), []), 'created')
    })

    test('the last owner of a scope keeps the role, also when two owners demote each other at once', async () => {
      const workspaceId = await newWorkspace()
      const [one, two] = [await member(workspaceId, 'owner'), await member(workspaceId, 'owner')]
      const outcomes = await Promise.all(
        [one, two].map(({ id }) => storage().changeOperatorRole(workspaceId, id, 'viewer', NOON, [])),
      )
      assert.deepEqual(outcomes.toSorted(), ['changed', 'last_owner'])
      const last = outcomes[0] === 'changed' ? two : one
      assert.equal(await storage().changeOperatorRole(workspaceId, last.id, null, NOON, []), 'last_owner')
      assert.equal(await storage().deleteOperator(last.id, NOON, []), 'last_owner')
      assert.equal(await storage().changeOperatorRole(workspaceId, last.id, 'owner', NOON, []), 'changed')
      assert.equal(await storage().changeOperatorRole(workspaceId, newId(), 'owner', NOON, []), 'unknown')
    })

    test('a session gives its person and all roles, and every change to them increases the revision', async () => {
      const [home, other] = [await newWorkspace(), await newWorkspace()]
      const operator = await member(home, 'admin')
      const { id, email } = operator
      const invited = invitation({ workspaceId: other, email })
      await storage().createInvitation(invited, [])
      const grows = async (change: () => Promise<unknown>) => {
        const before = await storage().controlRevision()
        await change()
        return (await storage().controlRevision()) > before
      }
      const row = session(id)
      await storage().createSignIn('session', row)
      const found = async () => storage().findSession(row.token)
      assert.deepEqual((await found())?.roles, [{ workspaceId: home, role: 'admin' }])
      assert.equal(await grows(() => storage().acceptInvitation(invited.id, { id }, NOON, [])), true)
      assert.equal((await found())?.roles.length, 2)
      assert.equal(await grows(() => storage().changeOperatorRole(other, id, null, NOON, [])), true)
      const now = await found()
      assert.deepEqual(now?.operator, { id, name: 'Ann', email, twoFactor: 0, createdAt: NOON })
      assert.deepEqual([now?.sessionId, now?.expiresAt, now?.everywhere], [row.id, NOON + DAY, null])
      await storage().touchCredentials([{ kind: 'session', id: row.token, at: NOON + 5 }])
      assert.equal((await storage().listSessions(id, NOON))[0]?.lastUsedAt, NOON + 5)
      assert.deepEqual(await storage().listSessions(id, NOON + DAY), [])
      assert.equal(await grows(() => storage().endSessions(id, { id: row.id }, [])), true)
      assert.equal(await found(), null)
      assert.equal(await storage().endSessions(id, { id: row.id }, []), 0)
    })

    test('a person can end only their own sessions, and a new password ends all but the one that set it', async () => {
      const [one, two] = [await member(null, 'viewer'), await member(null, 'viewer')]
      const rows = [session(one.id), session(one.id), session(one.id), session(two.id)]
      for (const row of rows) await storage().createSignIn('session', row)
      const [kept, , , foreign] = rows
      assert.equal(await storage().endSessions(one.id, { id: foreign?.id ?? '' }, []), 0)
      await storage().setPassword(one.id, 'new', NOON, kept?.id ?? '', [])
      assert.equal(await storage().readPassword(one.id), 'new')
      assert.deepEqual(
        (await storage().listSessions(one.id, NOON)).map(({ id }) => id),
        [kept?.id],
      )
      assert.equal((await storage().listSessions(two.id, NOON)).length, 1)
    })

    test('verifying an address ends the sessions and credentials from before, once', async () => {
      const { id, email } = await member(null, 'viewer')
      const row = session(id)
      await storage().createSignIn('session', row)
      await storage().verifyOperatorEmail(id, NOON, [])
      assert.equal((await storage().findOperatorByEmail(email))?.emailVerified, 1)
      assert.equal(await storage().readPassword(id), null)
      assert.equal(await storage().findSession(row.token), null)
      await storage().createSignIn('session', row)
      await storage().verifyOperatorEmail(id, NOON, [])
      assert.notEqual(await storage().findSession(row.token), null)
    })

    test('an identity of an issuer is linked once, and an invitation replaces it and ends the sessions', async () => {
      const { id, email } = await member(null, 'viewer')
      const issuer = `https://${newId()}.example.com`
      const link = (subject: string, replaces = false, of = issuer) => {
        const identity = { operatorId: id, issuer: of, accountId: `${of} ${subject}` }
        return storage().linkIdentity(identity, { replaces, now: NOON }, [])
      }
      const ownerOf = async (subject: string, of = issuer) => (await storage().findIdentity(`${of} ${subject}`))?.id
      assert.equal(await link('1'), 'linked')
      assert.equal(await link('2'), 'taken')
      // An issuer whose name begins with the name of another one is a different issuer.
      assert.equal(await link('2', false, `${issuer}.au`), 'linked')
      assert.deepEqual(
        [await ownerOf('1'), await ownerOf('2'), await ownerOf('2', `${issuer}.au`)],
        [id, undefined, id],
      )
      const row = session(id)
      await storage().createSignIn('session', row)
      assert.equal(await link('2', true), 'linked')
      assert.deepEqual(
        [await ownerOf('1'), await ownerOf('2'), await ownerOf('2', `${issuer}.au`)],
        [undefined, id, id],
      )
      assert.equal(await storage().findSession(row.token), null)
      assert.equal((await storage().findIdentity(`${issuer} 2`))?.email, email)
    })

    test('accounts of before belong to the issuer of the first start, and to no later one', async () => {
      const { id } = await member(null, 'viewer')
      const subject = newId()
      const record = {
        id: newId(),
        userId: id,
        providerId: 'oidc',
        accountId: subject,
        createdAt: NOON,
        updatedAt: NOON,
      }
      await storage().createSignIn('account', record)
      assert.equal(await storage().claimIdentities('https://id.example.com'), 1)
      assert.equal(await storage().claimIdentities('https://other.example.com'), 0)
      assert.equal((await storage().findIdentity(`https://id.example.com ${subject}`))?.id, id)
      // A node of the previous release links the same person in the meantime.
      await storage().createSignIn('account', { ...record, id: newId() })
      assert.equal(await storage().claimIdentities('https://id.example.com'), 0)
      const [early] = [newId()]
      await storage().createSignIn('account', { ...record, id: newId(), accountId: early })
      assert.equal(await storage().claimIdentities(null), 2)
      assert.equal(await storage().findIdentity(`https://id.example.com ${early}`), null)
      assert.equal(await storage().readPassword(id), 'phc')
    })

    test('deleting an account deletes everything that belongs to it, and only an invitation makes another', async () => {
      const { id, email } = await member(null, 'viewer')
      await storage().createSignIn('session', session(id))
      const factor = { id: newId(), userId: id, secret: 's', backupCodes: 'b', verified: 1 }
      await storage().createSignIn('twoFactor', factor)
      assert.equal(await storage().deleteOperator(id, NOON, []), 'changed')
      assert.equal(await storage().deleteOperator(id, NOON, []), 'unknown')
      assert.equal(await storage().findOperator(null, id), null)
      assert.equal(await storage().createOperator(person(email), 'viewer', []), 'ended')
      const again = invitation({ email })
      await storage().createInvitation(again, [])
      const invited = person(email)
      assert.equal(await storage().acceptInvitation(again.id, invited, NOON, []), 'accepted')
      assert.equal(await storage().createOperator(person(email), 'viewer', []), 'changed')
      const other = `${newId()}@example.com`
      assert.equal(await storage().createOperator(person(other), 'viewer', []), 'created')
      assert.equal((await storage().findOperatorByEmail(email))?.emailVerified, 0)
    })

    test('groups give the highest of their roles, in workspaces that exist, and take away only what groups gave', async () => {
      const home = newId()
      await storage().createWorkspace({ id: home, name: `name of ${home}`, createdAt: NOON }, [])
      const operator = person(`${newId()}@example.com`)
      assert.equal(await storage().createOperator(operator, null, []), 'created')
      const apply = (...granted: GrantedRole[]) =>
        storage().applyGroupRoles(operator.id, granted, auditEntry({ action: 'operator.change_role' }))
      const held = async (scope: string | null) => {
        const row = await storage().findOperator(scope, operator.id)
        return row && [row.role, row.fromGroups]
      }
      const gone = { workspace: newId(), role: 'owner' } as const
      const given = await apply(
        { workspace: `name of ${home}`, role: 'viewer' },
        { workspace: home, role: 'admin' },
        gone,
      )
      assert.deepEqual(given, [{ workspaceId: home, from: null, to: 'admin' }])
      assert.deepEqual(await held(home), ['admin', 1])
      assert.deepEqual(await apply({ workspace: home, role: 'admin' }), [])
      await apply({ workspace: null, role: 'approver' })
      assert.deepEqual([await held(home), await held(null)], [null, ['approver', 1]])
      await storage().changeOperatorRole(null, operator.id, 'viewer', NOON, [])
      await apply({ workspace: null, role: 'admin' })
      assert.deepEqual(await held(null), ['admin', 1])
      await apply()
      assert.deepEqual(await held(null), ['viewer', 0])
      const { rows } = await storage().listAudit(home, { limit: 10, after: null })
      assert.deepEqual(
        rows.map(({ detail }) => JSON.parse(detail) as unknown),
        [
          { from: 'admin', to: null },
          { from: null, to: 'admin' },
        ],
      )
      const named = [{ workspace: home, role: 'viewer' }, { workspace: null, role: 'viewer' }, gone] as const
      assert.deepEqual(await storage().missingWorkspaces(named), [gone.workspace])
    })

    test('a code signs in once before it expires, also in a race', async () => {
      const [one, two] = [newId(), newId()]
      const uses = await Promise.all([1, 2, 3].map(() => storage().useCode(one, '123456', NOON)))
      assert.deepEqual(uses.filter(Boolean), [true])
      assert.equal(await storage().useCode(two, '123456', NOON), true)
      assert.equal(await storage().useCode(one, '123457', NOON), true)
      assert.equal(await storage().useCode(one, '123456', NOON + 119_999), false)
      assert.equal(await storage().useCode(one, '123456', NOON + 120_000), true)
    })

    test('removing a second factor also clears the flag that requires it', async () => {
      const { id } = await member(null, 'viewer')
      await storage().createSignIn('twoFactor', { id: newId(), userId: id, secret: 's', backupCodes: 'b', verified: 1 })
      await storage().updateSignIn('user', [is('id', id)], { twoFactorEnabled: 1 }, {})
      assert.equal((await storage().findOperator(null, id))?.twoFactor, 1)
      await storage().removeSecondFactor(id, NOON, [])
      assert.equal((await storage().findOperator(null, id))?.twoFactor, 0)
      assert.deepEqual(await storage().findSignIn('twoFactor', { where: [is('userId', id)], limit: 9 }), [])
    })
  })

  describe('records of the sign-in library', () => {
    const storage = sharedStorage(open)

    const challenge = (given: object = {}) => ({
      id: newId(),
      identifier: newId(),
      value: 'v',
      createdAt: NOON,
      updatedAt: NOON,
      expiresAt: NOON + DAY,
      ...given,
    })

    test('a record is read back as it was created, without fields that are not stored', async () => {
      const row = challenge()
      assert.deepEqual(await storage().createSignIn('verification', { ...row, accessToken: 'secret' }), row)
      assert.deepEqual(await storage().findSignIn('verification', { where: [is('id', row.id)], limit: 1 }), [row])
    })

    test('records are found by all conditions together, newest first if requested', async () => {
      const identifier = newId()
      const rows = [0, 1, 2].map((at) => challenge({ identifier, createdAt: NOON + at, expiresAt: NOON + at }))
      for (const row of rows) await storage().createSignIn('verification', row)
      const find = async (where: SignInCondition[], newestFirst = false, limit = 9) =>
        (
          await storage().findSignIn('verification', {
            where: [is('identifier', identifier), ...where],
            limit,
            newestFirst,
          })
        ).map(({ createdAt }) => Number(createdAt) - NOON)
      assert.deepEqual(await find([], true), [2, 1, 0])
      assert.deepEqual(await find([], true, 1), [2])
      assert.deepEqual(await find([{ field: 'expiresAt', operator: 'lt', value: NOON + 1 }]), [0])
      assert.deepEqual(await find([{ field: 'expiresAt', operator: 'gte', value: NOON + 1 }], true), [2, 1])
      assert.deepEqual(await find([{ field: 'id', operator: 'in', value: [rows[1]?.id ?? ''] }]), [1])
      assert.deepEqual(await find([{ field: 'id', operator: 'in', value: [] }]), [])
      assert.deepEqual(await find([{ field: 'value', operator: 'eq', value: null }]), [])
      assert.equal((await find([{ field: 'value', operator: 'ne', value: null }])).length, 3)
      await assert.rejects(find([is('no such field', 'x')]), /Unknown field/)
    })

    test('a record is taken by one of many concurrent callers', async () => {
      const row = challenge()
      await storage().createSignIn('verification', row)
      const where = [is('identifier', row.identifier)]
      const taken = await Promise.all(
        Array.from({ length: 8 }, () => storage().deleteSignIn('verification', where, true)),
      )
      assert.deepEqual(taken.flat(), [row])
    })

    test('concurrent increments are all counted, and only for matching records', async () => {
      const operator = person(`${newId()}@example.com`)
      await storage().createOperator(operator, 'viewer', [])
      const factor = { id: newId(), userId: operator.id, secret: 's', backupCodes: 'b', verified: 1 }
      await storage().createSignIn('twoFactor', factor)
      const add = (where: SignInCondition[], set = {}) =>
        storage().updateSignIn('twoFactor', [is('id', factor.id), ...where], set, { failedVerificationCount: 1 })
      await Promise.all(Array.from({ length: 10 }, () => add([])))
      const [counted] = await add([])
      assert.equal(counted?.['failedVerificationCount'], 11)
      assert.deepEqual(await add([{ field: 'failedVerificationCount', operator: 'gte', value: 12 }]), [])
      const [locked] = await add([{ field: 'failedVerificationCount', operator: 'gte', value: 11 }], {
        lockedUntil: NOON,
      })
      assert.equal(locked?.['lockedUntil'], NOON)
    })

    test('only expired records are deleted', async () => {
      const [old, young] = [challenge({ expiresAt: 1 }), challenge()]
      for (const row of [old, young]) await storage().createSignIn('verification', row)
      assert.ok((await storage().deleteExpiredSignIns(1)) >= 1)
      const find = (id: string) => storage().findSignIn('verification', { where: [is('id', id)], limit: 1 })
      assert.deepEqual(await find(old.id), [])
      assert.deepEqual(await find(young.id), [young])
    })
  })
}
