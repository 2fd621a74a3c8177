/**
 * A person of a directory:
 *
 *   unknown --created--> active --deactivated--> ended --activated--> active, with the roles of the groups
 *   active or ended --deleted--> unknown, and the account is ended
 *
 * Deactivation ends sessions, passwords, second factors, links to Slack, roles, the invitations that the person made and those
 * to the address, and the tokens that the person made, with those that these made.
 */
import type {
  AuditEntry,
  DirectoryFilter,
  DirectoryGroup,
  DirectoryGroupRow,
  DirectoryPage,
  DirectoryPersonRow,
  GivenPerson,
  GroupRoleEntries,
  PersonChange,
  GroupChange,
} from '../../people/operators.ts'
import { uuidv7 } from '../../engine/uuid.ts'
import { read, write, countOf, selectList, type Sql } from '../engine/sql.ts'
import { insertAudit } from './audit.ts'
import { auditControl, lockControl } from '../engine/revision.ts'
import { allIn, insertRows } from '../engine/rows.ts'
import { applyToPeople } from './group-roles.ts'
import { revokeTokensOf } from './operator-tokens.ts'
import { deleteAccount, deleteOf, endInvitations, endPassword, insertOperator, WAYS_IN } from './operators.ts'

export const directoryActs = {
  ...read({ listDirectoryPeople, listDirectoryGroups, findManagedPerson }),
  ...write({ createDirectoryPerson, changeDirectoryPerson, deleteDirectoryPerson }),
}

const PERSON = `o.id, d.user_name AS "userName", d.external_id AS "externalId", o.name, o.email, d.active,
  d.created_at AS "createdAt", d.updated_at AS "updatedAt"`
const PEOPLE = 'directory_people d JOIN operators o ON o.id = d.operator_id'
const PERSON_FIELDS = { id: 'o.id', userName: 'd.user_key', externalId: 'd.external_id', email: 'o.email' } as const
const GROUP_FIELDS = { id: 'g.id', displayName: 'g.name_key', externalId: 'g.external_id' } as const

type PersonField = keyof typeof PERSON_FIELDS
type GroupField = keyof typeof GROUP_FIELDS

interface Slice {
  offset: number
  limit: number
}

function condition(fields: Record<string, string>, filter: DirectoryFilter<string>): [string, { value?: string }] {
  if (filter === null) return ['', {}]
  const { field, value } = filter
  const isExact = field === 'id' || field === 'externalId'
  return [`WHERE ${fields[field]} = :value`, { value: isExact ? value : value.toLowerCase() }]
}

async function listDirectoryPeople(
  sql: Sql,
  filter: DirectoryFilter<PersonField>,
  slice: Slice,
): Promise<DirectoryPage<DirectoryPersonRow>> {
  const [where, params] = condition(PERSON_FIELDS, filter)
  const total = await countOf(sql, `SELECT count(*) AS count FROM ${PEOPLE} ${where}`, params)
  const text = `SELECT ${PERSON} FROM ${PEOPLE} ${where} ORDER BY o.id LIMIT :limit OFFSET :offset`
  return { total, rows: await sql.all(text, { ...params, ...slice }) }
}

async function listDirectoryGroups(
  sql: Sql,
  filter: DirectoryFilter<GroupField>,
  slice: Slice,
  withMembers: boolean,
): Promise<DirectoryPage<DirectoryGroup>> {
  const [where, params] = condition(GROUP_FIELDS, filter)
  const total = await countOf(sql, `SELECT count(*) AS count FROM directory_groups g ${where}`, params)
  const text = `SELECT ${selectList('id name external_id created_at updated_at', 'g.')} FROM directory_groups g ${where}
    ORDER BY g.id LIMIT :limit OFFSET :offset`
  const rows = await sql.all<DirectoryGroupRow>(text, { ...params, ...slice })
  const groups: DirectoryGroup[] = []
  const members = `SELECT o.id, o.name FROM directory_members m JOIN operators o ON o.id = m.operator_id
    WHERE m.group_id = :id ORDER BY o.id`
  for (const row of rows) groups.push({ ...row, members: withMembers ? await sql.all(members, { id: row.id }) : [] })
  return { total, rows: groups }
}

/** Finds a person by the identity that signs in or by its address. Null: no directory manages the person. */
async function findManagedPerson(sql: Sql, accountId: string, email: string | null) {
  const text = `SELECT d.operator_id AS "id", d.active FROM ${PEOPLE}
    WHERE o.id IN (SELECT a.operator_id FROM operator_accounts a WHERE a.provider_id = 'oidc' AND a.account_id = :accountId)
      OR o.email = :email`
  const accountRow = await sql.all<{ id: string; active: number }>(text, { accountId, email })
  const person = accountRow.find(({ active }) => active === 0) ?? accountRow[0]
  return person === undefined ? null : { ...person, groups: await groupsOf(sql, person.id) }
}

async function groupsOf(sql: Sql, operatorId: string): Promise<string[]> {
  const text = `SELECT g.name FROM directory_members m JOIN directory_groups g ON g.id = m.group_id
    WHERE m.operator_id = :operatorId`
  return (await sql.all<{ name: string }>(text, { operatorId })).map(({ name }) => name)
}

/** Active people get the roles of their groups. */
async function applyDirectoryGroups(
  sql: Sql,
  operatorIds: readonly string[],
  roles: GroupRoleEntries,
  template: AuditEntry,
): Promise<void> {
  const known = new Map(roles)
  const text = `SELECT o.id, o.email FROM ${PEOPLE} WHERE d.active = 1 AND o.id IN (:ids)`
  const people = await allIn<{ id: string; email: string }>(sql, text, { ids: operatorIds })
  const ids = people.map(({ id }) => id)
  const memberships = `SELECT m.operator_id AS "id", g.name FROM directory_members m
    JOIN directory_groups g ON g.id = m.group_id WHERE m.operator_id IN (:ids)`
  const groups = Map.groupBy(await allIn<{ id: string; name: string }>(sql, memberships, { ids }), ({ id }) => id)
  const givenPeople = people.map(({ id, email }) => {
    const granted = (groups.get(id) ?? []).flatMap(({ name }) => known.get(name) ?? [])
    const detail = JSON.stringify({ email, by: 'groups' })
    const entry = { ...template, action: 'operator.change_role', targetKind: 'operator', targetId: id, detail }
    return { operatorId: id, granted, template: entry }
  })
  if (givenPeople.length > 0) await applyToPeople(sql, givenPeople)
}

type Saved = { outcome: 'saved'; id: string } | { outcome: 'taken' | 'unknown' | 'full' }

/** `taken`: the user name or address belongs to another person. The directory vouches for the address. */
async function createDirectoryPerson(
  sql: Sql,
  newId: string,
  givenPerson: GivenPerson,
  roles: GroupRoleEntries,
  template: AuditEntry,
): Promise<Saved> {
  await lockControl(sql)
  const { name, email } = givenPerson
  const account = await sql.get<{ id: string; emailVerified: number }>(
    'SELECT id, email_verified AS "emailVerified" FROM operators WHERE email = :email',
    { email },
  )
  const id = account?.id ?? newId
  if ((await personOf(sql, id)) !== null || (await isTaken(sql, id, givenPerson))) return { outcome: 'taken' }
  if ((await countOf(sql, 'SELECT count(*) AS count FROM directory_people', {})) >= PEOPLE_MAX)
    return { outcome: 'full' }
  if (account === null)
    await insertOperator(sql, { id, name, email, emailVerified: 1, createdAt: template.at, password: null })
  // Anyone may have opened the account if its address is unverified, so end that password.
  else if (account.emailVerified === 0) await endPassword(sql, id, template.at)
  return store(sql, id, null, { ...givenPerson, active: givenPerson.active ?? true }, roles, template)
}

/**
 * Reads and writes under one lock, so that members that the change does not name keep what another request has just
 * set.
 */
async function changeDirectoryPerson(
  sql: Sql,
  id: string,
  { externalId, name, ...change }: PersonChange,
  roles: GroupRoleEntries,
  template: AuditEntry,
): Promise<Saved> {
  await lockControl(sql)
  const former = await personOf(sql, id)
  if (former === null) return { outcome: 'unknown' }
  const userName = change.userName ?? former.userName
  const next = {
    userName,
    externalId: externalId === undefined ? former.externalId : externalId,
    name: name === undefined ? former.name : (name ?? userName),
    email: change.email ?? former.email,
    active: change.active ?? former.active === 1,
  }
  if (await isTaken(sql, id, next)) return { outcome: 'taken' }
  return store(sql, id, former, next, roles, template)
}

function personOf(sql: Sql, id: string): Promise<DirectoryPersonRow | null> {
  return sql.get(`SELECT ${PERSON} FROM ${PEOPLE} WHERE o.id = :id`, { id })
}

async function isTaken(sql: Sql, id: string, { userName, email }: GivenPerson): Promise<boolean> {
  const text = `SELECT 1 FROM directory_people WHERE user_key = :userKey AND operator_id <> :id
    UNION ALL SELECT 1 FROM operators WHERE email = :email AND id <> :id`
  return (await sql.get(text, { userKey: userName.toLowerCase(), email, id })) !== null
}

async function store(
  sql: Sql,
  id: string,
  former: DirectoryPersonRow | null,
  { userName, externalId, name, email, active }: GivenPerson,
  roles: GroupRoleEntries,
  template: AuditEntry,
): Promise<Saved> {
  const now = template.at
  const account =
    'UPDATE operators SET name = :name, email = :email, email_verified = 1, updated_at = :now WHERE id = :id'
  await sql.run(account, { name, email, now, id })
  const row = { userName, userKey: userName.toLowerCase(), externalId, active: active ? 1 : 0, updatedAt: now }
  if (former === null) await insertRows(sql, 'directory_people', [{ operatorId: id, ...row, createdAt: now }])
  else {
    const update = `UPDATE directory_people SET user_name = :userName, user_key = :userKey, external_id = :externalId,
      active = :active, updated_at = :updatedAt WHERE operator_id = :id`
    await sql.run(update, { ...row, id })
  }
  const moved = former !== null && former.email !== email ? { formerEmail: former.email } : {}
  const entry = (action: string, detail: object) => scimEntry(template, action, id, { email, ...moved, ...detail })
  const entries = former === null ? [entry('operator.provision', { userName })] : []
  if (!active && former?.active !== 0) entries.push(entry('operator.deactivate', await endAccess(sql, id, email, now)))
  if (active && former?.active === 0) {
    // A sign-in that was under way at the deactivation may have left a session.
    await endAccess(sql, id, email, now)
    entries.push(entry('operator.activate', {}))
  }
  if (former?.active === Number(active)) await insertAudit(sql, [entry('operator.update', { userName })])
  await auditControl(sql, entries)
  await applyDirectoryGroups(sql, [id], roles, template)
  return { outcome: 'saved', id }
}

/** Deletes the last owner too: `tacho recover` makes a new one. */
async function deleteDirectoryPerson(sql: Sql, id: string, template: AuditEntry): Promise<boolean> {
  await lockControl(sql)
  const person = await sql.get<{ email: string }>(`SELECT o.email FROM ${PEOPLE} WHERE o.id = :id`, { id })
  if (person === null) return false
  const ended = await endAccess(sql, id, person.email, template.at)
  await deleteAccount(sql, id, template.at)
  await auditControl(sql, [scimEntry(template, 'operator.delete', id, { ...person, ...ended })])
  return true
}

/** More people than any installation has. */
const PEOPLE_MAX = 100_000

/** @param action its noun is the kind of its target */
function scimEntry(template: AuditEntry, action: string, id: string, detail: object): AuditEntry {
  const target = { targetKind: action.split('.', 1)[0]!, targetId: id }
  return { ...template, ...target, action, id: uuidv7(template.at), detail: JSON.stringify({ ...detail, by: 'scim' }) }
}

async function endAccess(sql: Sql, id: string, email: string, now: number) {
  const sessions = await sql.run('DELETE FROM operator_sessions WHERE operator_id = :id', { id })
  await endPassword(sql, id, now)
  await deleteOf(sql, id, [...WAYS_IN, 'slack_links', 'operator_roles'])
  await endInvitations(sql, id, email, now)
  return { sessions, tokens: await revokeTokensOf(sql, id, now) }
}

/** Groups that the directory created. Each change updates the roles of their people. */
export const directoryGroupsActs = write({ createDirectoryGroup, changeDirectoryGroup, deleteDirectoryGroup })

const GROUPS_MAX = 10_000

type Outcome = 'saved' | 'taken' | 'unknown' | 'no_member' | 'full'

async function createDirectoryGroup(
  sql: Sql,
  id: string,
  change: GroupChange & { name: string },
  roles: GroupRoleEntries,
  template: AuditEntry,
): Promise<Outcome> {
  await lockControl(sql)
  if ((await countOf(sql, 'SELECT count(*) AS count FROM directory_groups', {})) >= GROUPS_MAX) return 'full'
  const nameKey = change.name.toLowerCase()
  const row = {
    id,
    name: change.name,
    nameKey,
    externalId: change.externalId ?? null,
    createdAt: template.at,
    updatedAt: template.at,
  }
  if (await isNameTaken(sql, id, nameKey)) return 'taken'
  if (!(await areKnown(sql, [...(change.members ?? []), ...change.add]))) return 'no_member'
  await insertRows(sql, 'directory_groups', [row])
  await auditControl(sql, [scimEntry(template, 'directory_group.create', id, { name: change.name })])
  return changeDirectoryGroup(sql, id, change, roles, template)
}

/** The members' roles change at once. */
async function changeDirectoryGroup(
  sql: Sql,
  id: string,
  { name, externalId, members, add, remove }: GroupChange,
  roles: GroupRoleEntries,
  template: AuditEntry,
): Promise<Outcome> {
  await lockControl(sql)
  const group = await sql.get<{ name: string; externalId: string | null }>(
    'SELECT name, external_id AS "externalId" FROM directory_groups WHERE id = :id',
    { id },
  )
  if (group === null) return 'unknown'
  const next = { name: name ?? group.name, externalId: externalId === undefined ? group.externalId : externalId }
  const nameKey = next.name.toLowerCase()
  if (await isNameTaken(sql, id, nameKey)) return 'taken'
  const held = new Set(await membersOf(sql, id))
  const wanted = new Set(members ?? held)
  for (const one of add) wanted.add(one)
  for (const one of remove) wanted.delete(one)
  const added = [...wanted].filter((one) => !held.has(one))
  const removed = [...held].filter((one) => !wanted.has(one))
  if (!(await areKnown(sql, added))) return 'no_member'
  const update = `UPDATE directory_groups SET name = :name, name_key = :nameKey, external_id = :externalId, updated_at = :now
    WHERE id = :id`
  await sql.run(update, { ...next, nameKey, now: template.at, id })
  if (added.length > 0)
    await insertRows(
      sql,
      'directory_members',
      added.map((operatorId) => ({ groupId: id, operatorId })),
    )
  for (const operatorId of removed) {
    await sql.run('DELETE FROM directory_members WHERE group_id = :id AND operator_id = :operatorId', {
      id,
      operatorId,
    })
  }
  const detail = {
    name: next.name,
    ...(next.name !== group.name && { from: group.name }),
    added: added.length,
    removed: removed.length,
  }
  await auditControl(sql, [scimEntry(template, 'directory_group.change', id, detail)])
  await applyDirectoryGroups(
    sql,
    next.name === group.name ? [...added, ...removed] : [...wanted, ...removed],
    roles,
    template,
  )
  return 'saved'
}

async function areKnown(sql: Sql, ids: readonly string[]): Promise<boolean> {
  const text = 'SELECT operator_id FROM directory_people WHERE operator_id IN (:ids)'
  return (await allIn<object>(sql, text, { ids })).length === new Set(ids).size
}

async function isNameTaken(sql: Sql, id: string, nameKey: string): Promise<boolean> {
  const text = 'SELECT 1 FROM directory_groups WHERE name_key = :nameKey AND id <> :id'
  return (await sql.get(text, { nameKey, id })) !== null
}

async function deleteDirectoryGroup(
  sql: Sql,
  id: string,
  roles: GroupRoleEntries,
  template: AuditEntry,
): Promise<boolean> {
  await lockControl(sql)
  const members = await membersOf(sql, id)
  await sql.run('DELETE FROM directory_members WHERE group_id = :id', { id })
  const gone = await sql.get<{ name: string }>('DELETE FROM directory_groups WHERE id = :id RETURNING name', { id })
  if (gone === null) return false
  await auditControl(sql, [scimEntry(template, 'directory_group.delete', id, { ...gone, removed: members.length })])
  await applyDirectoryGroups(sql, members, roles, template)
  return true
}

async function membersOf(sql: Sql, id: string): Promise<string[]> {
  const text = 'SELECT operator_id AS "id" FROM directory_members WHERE group_id = :id'
  return (await sql.all<{ id: string }>(text, { id })).map((row) => row.id)
}
