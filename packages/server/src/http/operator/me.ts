import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance } from 'fastify'
import type { Deps } from '../deps.ts'
import { serveRoute } from '../serve-route.ts'
import { actorOf } from './access.ts'

export function meRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage } = deps

  serveRoute(app, OPERATOR_ROUTES.readMe, deps, async ({ request }) => {
    const { kind, id, name, installation, everywhere, ownWorkspaces, roleIn } = actorOf(request)
    const person = request.session?.operator
    const page = { limit: ownWorkspaces.length, after: null }
    const { rows } = ownWorkspaces.length > 0 ? await storage.listWorkspaces(page, ownWorkspaces) : { rows: [] }
    const workspaces = rows.map((row) => ({ id: row.id, name: row.name, role: roleIn(row.id) ?? 'viewer' }))
    return {
      kind,
      id,
      name: person?.name ?? name,
      email: person?.email ?? null,
      twoFactor: person?.twoFactor === 1,
      installation,
      everywhere,
      workspaces,
    }
  })
}
