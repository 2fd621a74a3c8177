import { randomBytes } from 'node:crypto'
import type { Operator } from '@tacho/contract/people/operator.ts'
import { includesRole } from '@tacho/contract/engine/words.ts'
import type { OperatorToken } from '@tacho/contract/people/token.ts'
import type { AuditEntry } from '@tacho/contract/people/audit.ts'
import { AUDIT_FILTERS } from '@tacho/contract/people/audit-filters.ts'
import type { MemberRow, RoleChange, OperatorTokenRow, AuditEntry as AuditRow } from '../../storage/people/operators.ts'
import { foundOr, refuse, type Refusal } from '../web/reply-error.ts'
import { listById, NOTHING } from '../web/paging.ts'
import { pick, isoOf } from '../../domain/web/shown.ts'
import type { Actor } from './access.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'
import { newOperatorToken } from '../../domain/people/credential.ts'
import { futureTimeOf, networksOf, storedFilter, timeOf } from '../web/field.ts'
import { isoTime } from '../../storage/engine/times.ts'

const NO_OPERATOR = refuse('not_found', 'The operator does not exist')
const LAST_OWNER = refuse('conflict', 'This is the last owner; make another person an owner first')
const DEACTIVATED = refuse(
  'conflict',
  'The directory has deactivated the account, which can have no role until it is active again',
)

export function operatorsRoutes({ serve, storage, refreshCredentials }: OperatorDeps): void {
  serve(['listOperators', 'listInstallationOperators'], ({ workspace, paging }) =>
    listById(paging, (page) => storage.listOperators(workspace?.id ?? null, page), toOperator),
  )

  serve(['changeRole', 'changeInstallationRole'], async ({ params, body: { role }, workspace, at, audit }) => {
    const [workspaceId, id] = [workspace?.id ?? null, params.operatorId]
    const before = foundOr(await storage.findOperator(workspaceId, id), NO_OPERATOR)
    const entries = audit(id, { email: before.email, from: before.role, to: role })
    const refusal = await refusalOf(await storage.changeOperatorRole(workspaceId, id, role, at, entries))
    const { damaged: _, ...member } = before
    return refusal ?? toOperator({ ...member, role, fromGroups: 0 })
  })

  serve('removeOperator', async ({ params: { operatorId: id }, workspace, at, audit }) => {
    const { email } = foundOr(await storage.findOperator(workspace.id, id), NO_OPERATOR)
    const outcome = await storage.changeOperatorRole(workspace.id, id, null, at, audit(id, { email }))
    return (await refusalOf(outcome)) ?? { id }
  })

  serve('deleteOperator', async ({ params: { operatorId: id }, at, audit }) => {
    const { email } = foundOr(await storage.findOperator(null, id), NO_OPERATOR)
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
    ...(row.damaged && { damaged: true as const }),
  }
}

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

const NO_TOKEN = refuse('not_found', 'The operator token does not exist')
const ENDED = refuse('conflict', 'The token is revoked, expired or already replaced')
const ABOVE = refuse('forbidden', 'You cannot grant a role above your own')

export function tokensRoutes({ serve, storage, refreshCredentials }: OperatorDeps): void {
  serve(['listTokens', 'listInstallationTokens'], ({ workspace, paging }) =>
    listById(paging, (page) => storage.listOperatorTokens(workspace?.id ?? null, page), toOperatorToken),
  )

  serve(['createToken', 'createInstallationToken'], async ({ body, workspace, actor, at, audit }) => {
    const workspaceId = workspace?.id ?? null
    const { name, role } = body
    if (!includesRole(actor.roleIn(workspaceId ?? '') ?? 'viewer', role)) {
      return ABOVE
    }
    const expiresAt = typeof body.expiresAt === 'string' ? futureTimeOf('expiresAt', body.expiresAt, at) : null
    const { id, hash, text } = newOperatorToken(randomBytes)
    const allowedAddresses = networksOf(body.allowedAddresses) ?? null
    const creator = creatorOf(actor)
    const times = { createdAt: at, expiresAt, revokedAt: null, replacedBy: null, lastUsedAt: null }
    const row: OperatorTokenRow = { id, name, hash, workspaceId, role, allowedAddresses, ...creator, ...times }
    const shown = toOperatorToken(row)
    const entries = audit(id, { name, role, allowedAddresses, expiresAt: shown.expiresAt })
    if ((await storage.createOperatorToken(row, entries)) === 'forbidden') return ABOVE
    return { ...shown, token: text }
  })

  serve(['rotateToken', 'rotateInstallationToken'], async ({ params, body, workspace, actor, at, audit }) => {
    const { tokenId } = params
    const oldValidUntil = timeOf('oldValidUntil', body.oldValidUntil)
    const newExpiry = body.expiresAt
    const expiresAt = typeof newExpiry === 'string' ? futureTimeOf('expiresAt', newExpiry, at) : newExpiry
    const { id, hash, text } = newOperatorToken(randomBytes)
    const rotation = { id, hash, now: at, oldValidUntil, expiresAt, ...creatorOf(actor) }
    const entries = audit(tokenId, { ...body, newToken: id })
    const row = foundOr(await storage.rotateOperatorToken(workspace?.id ?? null, tokenId, rotation, entries), NO_TOKEN)
    if (row === 'ended') return ENDED
    if (row === 'forbidden') return ABOVE
    await refreshCredentials()
    return { ...toOperatorToken(row), token: text }
  })

  serve(['revokeToken', 'revokeInstallationToken'], async ({ params, query, workspace, at, audit }) => {
    const { tokenId: id } = params
    const alsoMade = query.alsoMade === 'true'
    const how = { now: at, alsoMade }
    const { token, made } = foundOr(
      await storage.revokeOperatorToken(workspace?.id ?? null, id, how, audit(id, alsoMade ? { alsoMade } : undefined)),
      NO_TOKEN,
    )
    await refreshCredentials()
    const madeTokens = made.map((row) => ({
      ...pick(row, 'id', 'workspaceId', 'name', 'role'),
      ...isoOf(row, 'revokedAt'),
    }))
    return { ...toOperatorToken(token), madeTokens }
  })
}

function creatorOf({ kind, id, name }: Actor) {
  return { creatorKind: kind, creatorId: id, creatorName: name }
}

function toOperatorToken(row: OperatorTokenRow): OperatorToken {
  const { creatorKind: kind, creatorId: id, creatorName: name } = row
  return {
    ...pick(row, 'id', 'workspaceId', 'name', 'role', 'allowedAddresses', 'replacedBy'),
    createdBy: kind === null || id === null || name === null ? null : { kind, id, name },
    ...isoOf(row, 'createdAt', 'expiresAt', 'revokedAt', 'lastUsedAt'),
    ...(row.damaged && { damaged: true }),
  }
}

export function auditLogRoutes({ serve, storage }: OperatorDeps): void {
  serve(['listAudit', 'listInstallationAudit'], ({ query, workspace, paging }) => {
    const filter = storedFilter(AUDIT_FILTERS, query)
    if (filter === null) return NOTHING
    return listById(paging, (page) => storage.listAudit(workspace?.id ?? null, page, filter), toAuditEntry)
  })
}

function toAuditEntry(row: AuditRow): AuditEntry {
  return {
    id: row.id,
    at: isoTime(row.at),
    workspaceId: row.workspaceId,
    environmentId: row.environmentId,
    actor: { kind: row.actorKind, id: row.actorId, name: row.actorName },
    action: row.action,
    target: { kind: row.targetKind, id: row.targetId },
    detail: JSON.parse(row.detail) as Record<string, unknown>,
    requestId: row.requestId,
    address: row.address,
  }
}
