import type { FastifyInstance } from 'fastify'
import type { Deps } from '../deps.ts'
import { apiKeysRoutes } from './api-keys.ts'
import { backupsRoutes } from './backups.ts'
import { doctorRoutes } from './doctor.ts'
import { environmentsRoutes } from './environments.ts'
import { eventsRoutes } from './events.ts'
import { runsRoutes } from './runs.ts'
import { usageRoutes } from './usage.ts'
import { workspacesRoutes } from './workspaces.ts'

/** The whole operator API, behind the hook that checks the token. */
export function operatorRoutes(app: FastifyInstance, deps: Deps): void {
  app.decorateRequest('operatorToken', null)
  workspacesRoutes(app, deps)
  environmentsRoutes(app, deps)
  apiKeysRoutes(app, deps)
  runsRoutes(app, deps)
  eventsRoutes(app, deps)
  usageRoutes(app, deps)
  backupsRoutes(app, deps)
  doctorRoutes(app, deps)
}
