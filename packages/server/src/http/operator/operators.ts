import type { Role } from '@tacho/contract/operator/access.ts'
import type { Operator } from '@tacho/contract/operator/operator.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { MemberRow } from '../../storage/operators.ts'
import type { Deps } from '../deps.ts'
import { refuse, type Refusal } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { auditOf } from './audit.ts'
import { refreshCredentials } from './refresh-credentials.ts'
import { workspaceInPath } from './tokens.ts'
import { listPage, byId } from '../paging.ts'
import { pick, isoOf } from '../../domain/shown.ts'

const NO_OPERATOR = refuse('not_found', 'The operator does not exist')
const LAST_OWNER = refuse('conflict', 'This is the last owner; make another person an owner first')

/** Without a workspace in the path: all people. */
export function operatorsRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors, now } = deps

  serveRoute(app, OPERATOR_ROUTES.listOperators, deps, ({ request, query }) => list(request, query))
  serveRoute(app, OPERATOR_ROUTES.listInstallationOperators, deps, ({ request, query }) => list(request, query))
  serveRoute(app, OPERATOR_ROUTES.changeRole, deps, ({ request, params, body }) =>
    changeRole(request, params.operatorId.toLowerCase(), body.role),
  )
  serveRoute(app, OPERATOR_ROUTES.changeInstallationRole, deps, ({ request, params, body }) =>
    changeRole(request, params.operatorId.toLowerCase(), body.role),
  )

  serveRoute(app, OPERATOR_ROUTES.removeOperator, deps, async ({ request, params }) => {
    const id = params.operatorId.toLowerCase()
    const row = await storage.findOperator(workspaceInPath(request), id)
    if (!row) return NO_OPERATOR
    const audit = auditOf(request, now(), 'operator.remove', { kind: 'operator', id }, { email: row.email })
    const outcome = await storage.changeOperatorRole(workspaceInPath(request), id, null, now(), [audit])
    return (await refusalOf(outcome)) ?? { id }
  })

  serveRoute(app, OPERATOR_ROUTES.deleteOperator, deps, async ({ request, params }) => {
    const id = params.operatorId.toLowerCase()
    const row = await storage.findOperator(null, id)
    if (!row) return NO_OPERATOR
    const audit = auditOf(request, now(), 'operator.delete', { kind: 'operator', id }, { email: row.email })
    return (await refusalOf(await storage.deleteOperator(id, [audit]))) ?? { id }
  })

  function list(request: FastifyRequest, query: { limit?: number; cursor?: string }) {
    const workspaceId = workspaceInPath(request)
    return listPage(cursors, query, {
      of: ['operators', workspaceId],
      read: (page) => storage.listOperators(workspaceId, page),
      toItem: toOperator,
      placeOf: byId,
    })
  }

  async function changeRole(request: FastifyRequest, id: string, role: Role | null): Promise<Operator | Refusal> {
    const workspaceId = workspaceInPath(request)
    const before = await storage.findOperator(workspaceId, id)
    if (!before) return NO_OPERATOR
    const at = now()
    const detail = { email: before.email, from: before.role, to: role }
    const audit = auditOf(request, at, 'operator.change_role', { kind: 'operator', id }, detail)
    const refusal = await refusalOf(await storage.changeOperatorRole(workspaceId, id, role, at, [audit]))
    return refusal ?? toOperator({ ...before, role })
  }

  async function refusalOf(outcome: 'changed' | 'unknown' | 'last_owner'): Promise<Refusal | null> {
    if (outcome === 'unknown') return NO_OPERATOR
    if (outcome === 'last_owner') return LAST_OWNER
    await refreshCredentials(deps)
    return null
  }
}

function toOperator(row: MemberRow): Operator {
  const twoFactor = row.twoFactor === 1
  return { ...pick(row, 'id', 'name', 'email', 'role'), twoFactor, ...isoOf(row, 'createdAt', 'lastSignInAt') }
}
