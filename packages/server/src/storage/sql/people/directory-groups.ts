import type { AuditEntry, GroupChange, GroupRoleEntries } from '../../people/operators.ts'
import { uuidv7 } from '../../engine/uuid.ts'
import { write, countOf, type Sql } from '../engine/sql.ts'
import { auditControl, lockControl } from '../engine/revision.ts'
import { allIn, insertRows } from '../engine/rows.ts'
import { applyDirectoryGroups } from './directory.ts'

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
  await auditControl(sql, [entryOf(template, 'directory_group.create', id, { name: change.name })])
  return changeDirectoryGroup(sql, id, change, roles, template)
}

/** The members' roles follow at once. */
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
  await auditControl(sql, [entryOf(template, 'directory_group.change', id, detail)])
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
  await auditControl(sql, [entryOf(template, 'directory_group.delete', id, { ...gone, removed: members.length })])
  await applyDirectoryGroups(sql, members, roles, template)
  return true
}

async function membersOf(sql: Sql, id: string): Promise<string[]> {
  const text = 'SELECT operator_id AS "id" FROM directory_members WHERE group_id = :id'
  return (await sql.all<{ id: string }>(text, { id })).map((row) => row.id)
}

function entryOf(template: AuditEntry, action: string, id: string, detail: object): AuditEntry {
  const target = { targetKind: 'directory_group', targetId: id }
  return { ...template, ...target, action, id: uuidv7(template.at), detail: JSON.stringify({ ...detail, by: 'scim' }) }
}
