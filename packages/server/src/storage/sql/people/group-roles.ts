/**
 * The role of a person in a scope:
 *
 *   none --a group--> by groups --no group--> none
 *   by hand --a group with a higher role--> by groups, the former one kept --no higher group--> by hand
 *   by groups --somebody changes it--> by hand, until the next sign-in compares again
 */
import { includesRole } from '@tacho/contract/engine/words.ts'
import type { Role } from '@tacho/contract/web/route.ts'
import type { AuditEntry, GrantedRole, GroupRoleChange } from '../../people/operators.ts'
import { uuidv7 } from '../../engine/uuid.ts'
import { read, write, type Sql } from '../engine/sql.ts'
import { auditControl, lockControl } from '../engine/revision.ts'
import { allIn, insertRows } from '../engine/rows.ts'
import { damagedError, nameOf, takeSum, withSum } from '../engine/row-sums.ts'
import { INSTALLATION, isDeactivated, isLastOwner, ROLE_REMEDY, ROLE_REPLACED } from './operators.ts'

export const groupRolesActs = { ...read({ missingWorkspaces }), ...write({ applyGroupRoles }) }

interface ScopeRole {
  operatorId: string
  scope: string
  role: Role
  fromGroups: number
  handRole: Role | null
}

type Target = Pick<ScopeRole, 'role' | 'fromGroups' | 'handRole'> | null

/**
 * Gives the person exactly these roles by groups. A workspace that does not exist gives none. The last owner of a scope
 * remains owner. `deactivated`: a directory deactivated the person, maybe since the sign-in began. `template`: the
 * audit entry of each change, without its id, workspace and detail.
 */
async function applyGroupRoles(
  sql: Sql,
  operatorId: string,
  granted: readonly GrantedRole[],
  template: AuditEntry,
): Promise<GroupRoleChange[] | 'deactivated'> {
  await lockControl(sql)
  const isOut = `SELECT 1 FROM operators o WHERE o.id = :operatorId AND ${isDeactivated('o.id')}`
  if ((await sql.get(isOut, { operatorId })) !== null) return 'deactivated'
  const { changes, damaged } = await applyToPeople(sql, [{ operatorId, granted, template }])
  const [first] = damaged
  if (first !== undefined) throw damagedError(nameOf('operator_roles', first), ROLE_REMEDY)
  return changes
}

interface PersonGranted {
  operatorId: string
  granted: readonly GrantedRole[]
  template: AuditEntry
}

/**
 * A group has hundreds of people, so their roles and workspaces are read together. A damaged role stays as it is,
 * because rewriting it would give the damage a valid checksum. The audit log says so, and the other roles change.
 */
export async function applyToPeople(sql: Sql, people: readonly PersonGranted[]) {
  await lockControl(sql)
  const ids = people.map(({ operatorId }) => operatorId)
  const text = `SELECT ${withSum('operator_roles')} FROM operator_roles WHERE operator_id IN (:ids)`
  const rows = await allIn<ScopeRole>(sql, text, { ids })
  const damaged = rows.filter((row) => !takeSum(sql, 'operator_roles', row, row.scope))
  const held = Map.groupBy(rows, (row) => row.operatorId)
  const workspaces = await namedWorkspaces(
    sql,
    people.flatMap(({ granted }) => granted),
  )
  const changes: GroupRoleChange[] = []
  const entries: AuditEntry[] = []
  for (const { operatorId, granted, template } of people) {
    const present = new Map(held.get(operatorId)?.map((row) => [row.scope, row]))
    const wanted = highestRoles(granted, workspaces)
    for (const scope of new Set([...present.keys(), ...wanted.keys()])) {
      const row = present.get(scope) ?? null
      const workspaceId = scope === INSTALLATION ? null : scope
      const addEntry = (entryDetail: object) => {
        const detail = JSON.stringify({ ...(JSON.parse(template.detail) as object), ...entryDetail })
        entries.push({ ...template, id: uuidv7(template.at), workspaceId, detail })
      }
      if (row !== null && damaged.includes(row)) {
        addEntry({ damaged: true })
        continue
      }
      const target = targetOf(row, wanted.get(scope) ?? null)
      if (target?.role === row?.role && target?.fromGroups === row?.fromGroups) continue
      const losesOwner = row?.role === 'owner' && target?.role !== 'owner'
      if (losesOwner && (await isLastOwner(sql, scope, operatorId))) continue
      await store(sql, scope, operatorId, target, template.at)
      const change = { from: row?.role ?? null, to: target?.role ?? null }
      changes.push({ workspaceId, ...change })
      addEntry(change)
    }
  }
  if (entries.length > 0) await auditControl(sql, entries)
  return { changes, damaged }
}

/** The highest role for each scope. */
function highestRoles(granted: readonly GrantedRole[], ids: ReadonlyMap<string, string>): Map<string, Role> {
  const highest = new Map<string, Role>()
  for (const { workspace, role } of granted) {
    const scope = workspace === null ? INSTALLATION : ids.get(workspace)
    if (scope === undefined) continue
    const other = highest.get(scope)
    if (other === undefined || includesRole(role, other)) highest.set(scope, role)
  }
  return highest
}

async function namedWorkspaces(sql: Sql, granted: readonly GrantedRole[]): Promise<Map<string, string>> {
  const names = [...new Set(granted.flatMap(({ workspace }) => workspace ?? []))]
  const byId = await allIn<{ id: string }>(sql, 'SELECT id FROM workspaces WHERE id IN (:names)', { names })
  const text = 'SELECT id, name FROM workspaces WHERE name IN (:names)'
  const byName = await allIn<{ id: string; name: string }>(sql, text, { names })
  // If a workspace has the name of another's id, the name wins.
  return new Map([...byId.map(({ id }) => [id, id] as const), ...byName.map(({ id, name }) => [name, id] as const)])
}

/** Names and ids of the mapping that no workspace has. */
async function missingWorkspaces(sql: Sql, granted: readonly GrantedRole[]): Promise<string[]> {
  const ids = await namedWorkspaces(sql, granted)
  return [...new Set(granted.flatMap(({ workspace }) => (workspace === null || ids.has(workspace) ? [] : workspace)))]
}

function targetOf(present: ScopeRole | null, wanted: Role | null): Target {
  const byHand = present === null || present.fromGroups === 1 ? (present?.handRole ?? null) : present.role
  if (wanted !== null && (byHand === null || !includesRole(byHand, wanted))) {
    return { role: wanted, fromGroups: 1, handRole: byHand }
  }
  return byHand === null ? null : { role: byHand, fromGroups: 0, handRole: null }
}

async function store(sql: Sql, scope: string, operatorId: string, target: Target, now: number): Promise<void> {
  if (target === null) {
    await sql.run('DELETE FROM operator_roles WHERE scope = :scope AND operator_id = :operatorId', {
      scope,
      operatorId,
    })
    return
  }
  await insertRows(sql, 'operator_roles', [{ scope, operatorId, ...target, createdAt: now }], ROLE_REPLACED)
}
