import Type, { type Static } from 'typebox'
import { cursor, id, nextCursor, nullableTime, pageLimit, time, uuid } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'

const archivedAt = nullableTime('When it was archived; null: it is in use')

export const Workspace = Type.Object(
  { id: uuid('Workspace id'), name: Type.String(), createdAt: time('When it was created'), archivedAt },
  { $id: 'Workspace', description: 'A customer, team or product; holds environments' },
)
export type Workspace = Static<typeof Workspace>

/**
 * A new workspace or environment. Workspace names are unique in the installation, environment names in the workspace.
 */
export const NewName = Type.Object(
  { name: id(LIMITS.nameChars, 'Unique in the workspace or installation') },
  { $id: 'NewName', examples: [{ name: 'production' }] },
)
export type NewName = Static<typeof NewName>

export const ListQuery = Type.Object({ limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax), cursor })

export const ArchivableQuery = Type.Object({
  ...ListQuery.properties,
  archived: Type.Optional(Type.Enum(['true'], { description: 'Include archived ones' })),
})

export const WorkspacePage = Type.Object({ items: Type.Array(Workspace), nextCursor }, { $id: 'WorkspacePage' })
export type WorkspacePage = Static<typeof WorkspacePage>

export const WorkspaceParams = Type.Object({ workspaceId: uuid('Workspace id') })

export const Environment = Type.Object(
  {
    id: uuid('Environment id'),
    workspaceId: uuid('Its workspace'),
    name: Type.String(),
    createdAt: time('When it was created'),
    archivedAt: nullableTime('When it was archived; null: it is in use'),
    deleteAt: nullableTime('When it is deleted with all its data; null: no deletion is ordered'),
  },
  {
    $id: 'Environment',
    description: 'Part of a workspace, such as production. Workspace and environment together are the tenant',
  },
)
export type Environment = Static<typeof Environment>

export const EnvironmentPage = Type.Object({ items: Type.Array(Environment), nextCursor }, { $id: 'EnvironmentPage' })
export type EnvironmentPage = Static<typeof EnvironmentPage>

export const EnvironmentParams = Type.Object({ environmentId: uuid('Environment id') })
