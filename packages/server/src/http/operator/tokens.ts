import { randomBytes } from 'node:crypto'
import { includesRole } from '@tacho/contract/operator/access.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { CreatedOperatorToken, NewOperatorToken, OperatorToken } from '@tacho/contract/operator/token.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { newOperatorToken } from '../../domain/credential.ts'
import type { OperatorTokenRow } from '../../storage/operator-tokens.ts'
import type { Deps } from '../deps.ts'
import { refuse, type Refusal } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { actorOf } from './access.ts'
import { auditOf } from './audit.ts'
import { refreshCredentials } from './refresh-credentials.ts'
import { checkTexts, futureTimeOf } from '../field.ts'
import { listPage, byId } from '../paging.ts'
import { pick, isoOf } from '../../domain/shown.ts'

const NO_TOKEN = refuse('not_found', 'The operator token does not exist')

/** Without a workspace in the path: tokens that are valid in every workspace. */
export function tokensRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors, now } = deps

  serveRoute(app, OPERATOR_ROUTES.listTokens, deps, ({ request, query }) => list(request, query))
  serveRoute(app, OPERATOR_ROUTES.listInstallationTokens, deps, ({ request, query }) => list(request, query))
  serveRoute(app, OPERATOR_ROUTES.createToken, deps, ({ request, body }) => create(request, body))
  serveRoute(app, OPERATOR_ROUTES.createInstallationToken, deps, ({ request, body }) => create(request, body))
  serveRoute(app, OPERATOR_ROUTES.revokeToken, deps, ({ request, params }) => revoke(request, params.tokenId))
  serveRoute(app, OPERATOR_ROUTES.revokeInstallationToken, deps, ({ request, params }) =>
    revoke(request, params.tokenId),
  )

  function list(request: FastifyRequest, query: { limit?: number; cursor?: string }) {
    const workspaceId = workspaceInPath(request)
    return listPage(cursors, query, {
      of: ['tokens', workspaceId],
      read: (page) => storage.listOperatorTokens(workspaceId, page),
      toItem: toOperatorToken,
      placeOf: byId,
    })
  }

  async function create(request: FastifyRequest, body: NewOperatorToken): Promise<CreatedOperatorToken | Refusal> {
    const createdAt = now()
    const workspaceId = workspaceInPath(request)
    checkTexts({ name: body.name })
    const { role } = body
    if (!includesRole(actorOf(request).roleIn(workspaceId ?? '') ?? 'viewer', role)) {
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
  }

  async function revoke(request: FastifyRequest, id: string): Promise<OperatorToken | Refusal> {
    const at = now()
    const audit = auditOf(request, at, 'operator_token.revoke', { kind: 'operator_token', id })
    const row = await storage.revokeOperatorToken(workspaceInPath(request), id, at, [audit])
    if (!row) return NO_TOKEN
    await refreshCredentials(deps)
    return toOperatorToken(row)
  }
}

export function workspaceInPath({ operator }: FastifyRequest): string | null {
  return operator?.workspace?.id ?? null
}

function toOperatorToken(row: OperatorTokenRow): OperatorToken {
  return {
    ...pick(row, 'id', 'workspaceId', 'name', 'role'),
    ...isoOf(row, 'createdAt', 'expiresAt', 'revokedAt', 'lastUsedAt'),
  }
}
