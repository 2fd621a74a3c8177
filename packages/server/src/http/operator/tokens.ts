import { randomBytes } from 'node:crypto'
import { includesRole } from '@tacho/contract/operator/access.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { CreatedOperatorToken, NewOperatorToken, OperatorToken } from '@tacho/contract/operator/token.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { newOperatorToken } from '../../domain/credential.ts'
import { isoTime } from '../../domain/run.ts'
import type { OperatorTokenRow } from '../../storage/operator-tokens.ts'
import type { PageById } from '../../storage/page.ts'
import type { Deps } from '../deps.ts'
import { isRefusal, refuse, type Refusal } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { actorOf } from './access.ts'
import { auditOf } from './audit.ts'
import { nameRefusal, refuseField, timeOf } from '../field.ts'
import { listById } from './list-by-id.ts'

const NO_TOKEN = refuse('not_found', 'The operator token does not exist')

/** Tokens of the path's workspace; without a workspace, tokens that are valid in every workspace. */
export function tokensRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors, operatorTokens, now } = deps

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
    const read = (page: PageById) => storage.listOperatorTokens(workspaceId, page)
    return listById(cursors, ['tokens', workspaceId], query, read, toOperatorToken)
  }

  async function create(request: FastifyRequest, body: NewOperatorToken): Promise<CreatedOperatorToken | Refusal> {
    const createdAt = now()
    const workspaceId = workspaceInPath(request)
    const refusal = nameRefusal(body.name)
    if (refusal) return refusal
    const { role } = body
    if (!includesRole(actorOf(request).roleIn(workspaceId ?? '') ?? 'viewer', role)) {
      return refuse('forbidden', 'You cannot grant a role above your own')
    }
    const expiresAt = typeof body.expiresAt === 'string' ? timeOf('expiresAt', body.expiresAt) : null
    if (isRefusal(expiresAt)) return expiresAt
    if (expiresAt !== null && expiresAt <= createdAt) return refuseField('expiresAt', 'must be in the future')
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
    // Apply it on this node now instead of waiting for the next poll.
    const askedAt = performance.now()
    operatorTokens.observeRevision(await storage.controlRevision(), askedAt)
    return toOperatorToken(row)
  }
}

/** The workspace in the path; null if there is none. */
export function workspaceInPath({ operator }: FastifyRequest): string | null {
  return operator?.workspace?.id ?? null
}

function toOperatorToken(row: OperatorTokenRow): OperatorToken {
  return {
    id: row.id,
    workspaceId: row.workspaceId,
    name: row.name,
    role: row.role,
    createdAt: isoTime(row.createdAt),
    expiresAt: row.expiresAt === null ? null : isoTime(row.expiresAt),
    revokedAt: row.revokedAt === null ? null : isoTime(row.revokedAt),
    lastUsedAt: row.lastUsedAt === null ? null : isoTime(row.lastUsedAt),
  }
}
