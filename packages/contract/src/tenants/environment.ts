import Type, { type Static } from 'typebox'
import { nextCursor, nullableTime, time, uuid } from '../web/fields.ts'

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
