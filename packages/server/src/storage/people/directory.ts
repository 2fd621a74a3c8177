/** People and groups that a directory manages through SCIM. A person of it is an operator, under the same id. */
import type { GrantedRole } from './operators.ts'

export interface DirectoryPersonRow {
  id: string
  userName: string
  externalId: string | null
  name: string
  email: string
  active: number
  createdAt: number
  updatedAt: number
}

export interface DirectoryGroupRow {
  id: string
  name: string
  externalId: string | null
  createdAt: number
  updatedAt: number
}

export interface DirectoryGroup extends DirectoryGroupRow {
  members: { id: string; name: string }[]
}

/** Of a whole resource. `active`: undefined stays as it is, and a new person is active. */
export type GivenPerson = Pick<DirectoryPersonRow, 'userName' | 'externalId' | 'name' | 'email'> & {
  active: boolean | undefined
}

/** Undefined stays as it is. `name`: null is the user name. */
export type PersonChange = Partial<Omit<GivenPerson, 'name'>> & { name?: string | null }

/** Undefined stays as it is. `members`: exactly these, before `add` and `remove`. */
export interface GroupChange {
  name?: string | undefined
  externalId?: string | null | undefined
  members?: string[] | undefined
  add: string[]
  remove: string[]
}

/** An equality; null matches everything. */
export type DirectoryFilter<Field extends string> = { field: Field; value: string } | null
export interface DirectoryPage<Row> {
  total: number
  rows: Row[]
}

/** What each group gives, as the settings say. */
export type GroupRoleEntries = readonly (readonly [group: string, roles: readonly GrantedRole[]])[]
