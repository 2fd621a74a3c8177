import type { Operator } from '@tacho/contract/operator/operator.ts'
import type { MemberRow } from '../../storage/operators.ts'
import { refuse, type Refusal } from '../reply-error.ts'
import { auditOf } from './audit.ts'
import { listPage, byId } from '../paging.ts'
import { pick, isoOf } from '../../domain/shown.ts'
import type { OperatorDeps } from './serve.ts'

const NO_OPERATOR = refuse('not_found', 'The operator does not exist')
const LAST_OWNER = refuse('conflict', 'This is the last owner; make another person an owner first')

export function operatorsRoutes({ serve, storage, cursors, now, refreshCredentials }: OperatorDeps): void {
  serve(['listOperators', 'listInstallationOperators'], ({ query, workspace }) => {
    const workspaceId = workspace?.id ?? null
    return listPage(cursors, query, {
      of: ['operators', workspaceId],
      read: (page) => storage.listOperators(workspaceId, page),
      toItem: toOperator,
      placeOf: byId,
    })
  })

  serve(['changeRole', 'changeInstallationRole'], async ({ params, body: { role }, request, workspace }) => {
    const workspaceId = workspace?.id ?? null
    const id = params.operatorId.toLowerCase()
    const before = await storage.findOperator(workspaceId, id)
    if (!before) return NO_OPERATOR
    const at = now()
    const detail = { email: before.email, from: before.role, to: role }
    const audit = auditOf(request, at, 'operator.change_role', { kind: 'operator', id }, detail)
    const refusal = await refusalOf(await storage.changeOperatorRole(workspaceId, id, role, at, [audit]))
    return refusal ?? toOperator({ ...before, role })
  })

  serve('removeOperator', async ({ request, params, workspace }) => {
    const id = params.operatorId.toLowerCase()
    const row = await storage.findOperator(workspace.id, id)
    if (!row) return NO_OPERATOR
    const audit = auditOf(request, now(), 'operator.remove', { kind: 'operator', id }, { email: row.email })
    const outcome = await storage.changeOperatorRole(workspace.id, id, null, now(), [audit])
    return (await refusalOf(outcome)) ?? { id }
  })

  serve('deleteOperator', async ({ request, params }) => {
    const id = params.operatorId.toLowerCase()
    const row = await storage.findOperator(null, id)
    if (!row) return NO_OPERATOR
    const audit = auditOf(request, now(), 'operator.delete', { kind: 'operator', id }, { email: row.email })
    return (await refusalOf(await storage.deleteOperator(id, [audit]))) ?? { id }
  })

  async function refusalOf(outcome: 'changed' | 'unknown' | 'last_owner'): Promise<Refusal | null> {
    if (outcome === 'unknown') return NO_OPERATOR
    if (outcome === 'last_owner') return LAST_OWNER
    await refreshCredentials()
    return null
  }
}

function toOperator(row: MemberRow): Operator {
  const twoFactor = row.twoFactor === 1
  return { ...pick(row, 'id', 'name', 'email', 'role'), twoFactor, ...isoOf(row, 'createdAt', 'lastSignInAt') }
}
