import type { Operator } from '@tacho/contract/people/operator.ts'
import type { MemberRow, RoleChange } from '../../storage/people/operators.ts'
import { found, refuse, type Refusal } from '../web/reply-error.ts'
import { listById } from '../web/paging.ts'
import { pick, isoOf } from '../../domain/web/shown.ts'
import type { OperatorDeps } from '../web/serve.ts'

const NO_OPERATOR = refuse('not_found', 'The operator does not exist')
const LAST_OWNER = refuse('conflict', 'This is the last owner; make another person an owner first')
const DEACTIVATED = refuse(
  'conflict',
  'The directory has deactivated the account, which can have no role until it is active again',
)

export function operatorsRoutes({ serve, storage, refreshCredentials }: OperatorDeps): void {
  serve(['listOperators', 'listInstallationOperators'], ({ workspace, walk }) =>
    listById(walk, (page) => storage.listOperators(workspace?.id ?? null, page), toOperator),
  )

  serve(['changeRole', 'changeInstallationRole'], async ({ params, body: { role }, workspace, at, audit }) => {
    const [workspaceId, id] = [workspace?.id ?? null, params.operatorId]
    const before = found(await storage.findOperator(workspaceId, id), NO_OPERATOR)
    const entries = audit(id, { email: before.email, from: before.role, to: role })
    const refusal = await refusalOf(await storage.changeOperatorRole(workspaceId, id, role, at, entries))
    return refusal ?? toOperator({ ...before, role, fromGroups: 0 })
  })

  serve('removeOperator', async ({ params: { operatorId: id }, workspace, at, audit }) => {
    const { email } = found(await storage.findOperator(workspace.id, id), NO_OPERATOR)
    const outcome = await storage.changeOperatorRole(workspace.id, id, null, at, audit(id, { email }))
    return (await refusalOf(outcome)) ?? { id }
  })

  serve('deleteOperator', async ({ params: { operatorId: id }, at, audit }) => {
    const { email } = found(await storage.findOperator(null, id), NO_OPERATOR)
    return (await refusalOf(await storage.deleteOperator(id, at, audit(id, { email })))) ?? { id }
  })

  async function refusalOf(outcome: RoleChange): Promise<Refusal | null> {
    if (outcome === 'unknown') return NO_OPERATOR
    if (outcome === 'last_owner') return LAST_OWNER
    if (outcome === 'deactivated') return DEACTIVATED
    await refreshCredentials()
    return null
  }
}

function toOperator(row: MemberRow): Operator {
  const [twoFactor, fromGroups, deactivated] = [row.twoFactor === 1, row.fromGroups === 1, row.deactivated === 1]
  return {
    ...pick(row, 'id', 'name', 'email', 'role'),
    fromGroups,
    twoFactor,
    deactivated,
    ...isoOf(row, 'createdAt', 'lastSignInAt'),
  }
}
