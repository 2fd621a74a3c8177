import { randomBytes } from 'node:crypto'
import { includesRole } from '@tacho/contract/web/access.ts'
import type { OperatorToken } from '@tacho/contract/people/token.ts'
import { newOperatorToken } from '../../domain/people/credential.ts'
import type { OperatorTokenRow } from '../../storage/people/operator-tokens.ts'
import { found, refuse } from '../web/reply-error.ts'
import { futureTimeOf, networksOf } from '../web/field.ts'
import { listById } from '../web/paging.ts'
import { pick, isoOf } from '../../domain/web/shown.ts'
import type { OperatorDeps } from '../web/serve.ts'

const NO_TOKEN = refuse('not_found', 'The operator token does not exist')
const ABOVE = refuse('forbidden', 'You cannot grant a role above your own')

export function tokensRoutes({ serve, storage, refreshCredentials }: OperatorDeps): void {
  serve(['listTokens', 'listInstallationTokens'], ({ workspace, walk }) =>
    listById(walk, (page) => storage.listOperatorTokens(workspace?.id ?? null, page), toOperatorToken),
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
    const creator = { creatorKind: actor.kind, creatorId: actor.id, creatorName: actor.name }
    const times = { createdAt: at, expiresAt, revokedAt: null, lastUsedAt: null }
    const row: OperatorTokenRow = { id, name, hash, workspaceId, role, allowedAddresses, ...creator, ...times }
    const shown = toOperatorToken(row)
    const entries = audit(id, { name, role, allowedAddresses, expiresAt: shown.expiresAt })
    if ((await storage.createOperatorToken(row, entries)) === 'forbidden') return ABOVE
    return { ...shown, token: text }
  })

  serve(['revokeToken', 'revokeInstallationToken'], async ({ params: { tokenId: id }, workspace, at, audit }) => {
    const row = found(await storage.revokeOperatorToken(workspace?.id ?? null, id, at, audit(id)), NO_TOKEN)
    await refreshCredentials()
    return toOperatorToken(row)
  })
}

function toOperatorToken(row: OperatorTokenRow): OperatorToken {
  const { creatorKind: kind, creatorId: id, creatorName: name } = row
  return {
    ...pick(row, 'id', 'workspaceId', 'name', 'role', 'allowedAddresses'),
    createdBy: kind === null || id === null || name === null ? null : { kind, id, name },
    ...isoOf(row, 'createdAt', 'expiresAt', 'revokedAt', 'lastUsedAt'),
    ...(row.damaged && { damaged: true }),
  }
}
