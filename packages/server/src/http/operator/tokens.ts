import { randomBytes } from 'node:crypto'
import { includesRole } from '@tacho/contract/operator/access.ts'
import type { OperatorToken } from '@tacho/contract/operator/token.ts'
import { newOperatorToken } from '../../domain/credential.ts'
import type { OperatorTokenRow } from '../../storage/operator-tokens.ts'
import { refuse } from '../reply-error.ts'
import { auditOf } from './audit.ts'
import { checkTexts, futureTimeOf } from '../field.ts'
import { listPage, byId } from '../paging.ts'
import { pick, isoOf } from '../../domain/shown.ts'
import type { OperatorDeps } from './serve.ts'

const NO_TOKEN = refuse('not_found', 'The operator token does not exist')

export function tokensRoutes({ serve, storage, cursors, now, refreshCredentials }: OperatorDeps): void {
  serve(['listTokens', 'listInstallationTokens'], ({ query, workspace }) => {
    const workspaceId = workspace?.id ?? null
    return listPage(cursors, query, {
      of: ['tokens', workspaceId],
      read: (page) => storage.listOperatorTokens(workspaceId, page),
      toItem: toOperatorToken,
      placeOf: byId,
    })
  })

  serve(['createToken', 'createInstallationToken'], async ({ body, request, workspace, actor }) => {
    const createdAt = now()
    const workspaceId = workspace?.id ?? null
    checkTexts({ name: body.name })
    const { role } = body
    if (!includesRole(actor.roleIn(workspaceId ?? '') ?? 'viewer', role)) {
      return refuse('forbidden', 'You cannot grant a role above your own')
    }
    const expiresAt = typeof body.expiresAt === 'string' ? futureTimeOf('expiresAt', body.expiresAt, createdAt) : null
    const { id, hash, text } = newOperatorToken(randomBytes)
    const times = { createdAt, expiresAt, revokedAt: null, lastUsedAt: null }
    const row: OperatorTokenRow = { id, name: body.name, hash, workspaceId, role, ...times }
    const shown = toOperatorToken(row)
    const detail = { name: row.name, role, expiresAt: shown.expiresAt }
    await storage.createOperatorToken(row, [
      auditOf(request, createdAt, 'operator_token.create', { kind: 'operator_token', id }, detail),
    ])
    return { ...shown, token: text }
  })

  serve(['revokeToken', 'revokeInstallationToken'], async ({ params: { tokenId: id }, request, workspace }) => {
    const at = now()
    const audit = auditOf(request, at, 'operator_token.revoke', { kind: 'operator_token', id })
    const row = await storage.revokeOperatorToken(workspace?.id ?? null, id, at, [audit])
    if (!row) return NO_TOKEN
    await refreshCredentials()
    return toOperatorToken(row)
  })
}

function toOperatorToken(row: OperatorTokenRow): OperatorToken {
  return {
    ...pick(row, 'id', 'workspaceId', 'name', 'role'),
    ...isoOf(row, 'createdAt', 'expiresAt', 'revokedAt', 'lastUsedAt'),
  }
}
