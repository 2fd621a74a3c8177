import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { NewPolicyVersion } from '@tacho/contract/operator/policy.ts'
import { compileCondition } from '@tacho/policy/compile.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { diffFields } from '../../domain/diff.ts'
import { toPolicy, toPolicyVersion } from '../../domain/policy.ts'
import type { AuditEntry } from '../../storage/audit.ts'
import type { NewPolicyVersionRow, PolicyVersionRow } from '../../storage/policies.ts'
import type { Deps } from '../deps.ts'
import { refuse } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { workspaceOf } from './access.ts'
import { auditOf } from './audit.ts'
import { newerVersion } from './versions.ts'
import { listPage, byId, byNumber } from '../paging.ts'
import { checkTexts } from '../field.ts'

const NO_POLICY = refuse('not_found', 'The workspace does not have this policy')
const NO_VERSION = refuse('not_found', 'The policy does not have this version')

export function policiesRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors, now } = deps

  serveRoute(app, OPERATOR_ROUTES.listPolicies, deps, async ({ query, request }) => {
    const workspaceId = workspaceOf(request).id
    const withArchived = query.archived === 'true'
    return listPage(cursors, query, {
      of: ['policies', workspaceId, withArchived],
      read: (page) => storage.listPolicies(workspaceId, page, withArchived),
      toItem: toPolicy,
      placeOf: byId,
    })
  })

  serveRoute(app, OPERATOR_ROUTES.createPolicy, deps, async ({ body, request }) => {
    const workspace = workspaceOf(request)
    checkVersion(body)
    const audit = auditOf(request, now(), 'policy.create', target(body.policyId), auditDetail(body))
    const first = newVersion(body.policyId, body, audit)
    const policy = { id: body.policyId, workspaceId: workspace.id, createdAt: audit.at }
    const outcome = await storage.createPolicy(policy, first, [audit])
    if (outcome === 'no_workspace') return refuse('not_found', 'The workspace does not exist')
    if (outcome === 'id_taken') return refuse('conflict', 'The workspace already has a policy with this id')
    const newest = { policyId: policy.id, number: 1, importedAt: null, ...first }
    return toPolicy({ ...policy, archivedAt: null, newest })
  })

  serveRoute(app, OPERATOR_ROUTES.readPolicy, deps, async ({ params, request }) => {
    const policy = await findPolicy(request, params.policyId)
    return policy ? toPolicy(policy) : NO_POLICY
  })

  serveRoute(app, OPERATOR_ROUTES.listPolicyVersions, deps, async ({ params, query, request }) => {
    const policy = await findPolicy(request, params.policyId)
    if (!policy) return NO_POLICY
    const { workspaceId, id } = policy
    return listPage(cursors, query, {
      of: ['policy versions', workspaceId, id],
      read: (page) => storage.listPolicyVersions(workspaceId, id, page),
      toItem: toPolicyVersion,
      placeOf: byNumber,
    })
  })

  serveRoute(app, OPERATOR_ROUTES.createPolicyVersion, deps, async ({ params, body, request }) => {
    const { policyId } = params
    checkVersion(body)
    const audit = auditOf(request, now(), 'policy.write_version', target(policyId), auditDetail(body))
    const version = newVersion(policyId, body, audit)
    const follows = body.follows === undefined ? null : Number(body.follows)
    const saved = await storage.createPolicyVersion(workspaceOf(request).id, policyId, version, follows, [audit])
    if (saved === null) return NO_POLICY
    if (saved.outcome === 'conflict') return newerVersion(toPolicyVersion(saved.version))
    return { ...toPolicyVersion(saved.version), isNew: saved.outcome === 'created' }
  })

  serveRoute(app, OPERATOR_ROUTES.readPolicyVersion, deps, async ({ params, request }) => {
    const version = await findVersion(request, params.policyId, params.version)
    return toPolicyVersion(version)
  })

  serveRoute(app, OPERATOR_ROUTES.diffPolicyVersions, deps, async ({ params, query, request }) => {
    const from = await findVersion(request, params.policyId, query.from)
    const to = await findVersion(request, params.policyId, query.to)
    return { ...query, fields: await diffFields(contentOf(from), contentOf(to)) }
  })

  async function findPolicy(request: FastifyRequest, policyId: string) {
    return storage.findPolicy(workspaceOf(request).id, policyId)
  }

  async function findVersion(request: FastifyRequest, policyId: string, version: string) {
    const { id } = workspaceOf(request)
    const found = await storage.findPolicyVersion(id, policyId, Number(version))
    if (found === null) throw NO_VERSION
    return found
  }
}

function newVersion(policyId: string, body: NewPolicyVersion, { actorName, at }: AuditEntry): NewPolicyVersionRow {
  const { name, description, condition, severity, action, note } = body
  const written = { author: actorName, note: note ?? null, createdAt: at }
  return { name: name ?? policyId, description: description ?? null, condition, severity, action, ...written }
}

function target(id: string) {
  return { kind: 'policy', id }
}

/** The version itself contains the condition. */
function auditDetail({ severity, action }: NewPolicyVersion) {
  return { severity, action }
}

function contentOf({ condition, severity, action, name, description }: PolicyVersionRow) {
  return { condition, severity, action, name, description }
}

function checkVersion({ name, description, condition, note }: NewPolicyVersion): void {
  checkTexts({ name, description, condition, note })
  checkCondition(condition)
}

export function checkCondition(condition: string): void {
  const compiled = compileCondition(condition)
  if (compiled.ok) return
  const errors = compiled.faults.map(({ message, position: { line, column } }) => ({
    path: '/condition',
    message: `${line}:${column}: ${message}`,
  }))
  throw refuse('invalid_request', `condition ${errors[0]?.message ?? 'cannot be compiled'}`, { errors })
}
