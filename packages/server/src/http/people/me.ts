import type { OperatorDeps } from '../web/serve.ts'

export function meRoutes({ serve, storage }: OperatorDeps): void {
  serve('readMe', async ({ request, actor }) => {
    const { kind, id, name, installation, everywhere, ownWorkspaces, roleIn } = actor
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
