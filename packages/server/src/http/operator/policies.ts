import type { NewPolicyVersion } from '@tacho/contract/operator/policy.ts'
import { compileCondition } from '@tacho/policy/compile.ts'
import { diffFields } from '../../domain/diff.ts'
import { toPolicy, toPolicyVersion } from '../../domain/policy.ts'
import type { AuditEntry } from '../../storage/audit.ts'
import type { NewPolicyVersionRow, PolicyVersionRow } from '../../storage/policies.ts'
import { refuse } from '../reply-error.ts'
import { auditOf } from './audit.ts'
import { newerVersion } from './versions.ts'
import { listPage, byId, byNumber } from '../paging.ts'
import { checkTexts } from '../field.ts'
import type { OperatorDeps } from './serve.ts'

const NO_POLICY = refuse('not_found', 'The workspace does not have this policy')
const NO_VERSION = refuse('not_found', 'The policy does not have this version')

export function policiesRoutes({ serve, storage, cursors, now }: OperatorDeps): void {
  serve('listPolicies', async ({ query, workspace: { id: workspaceId } }) => {
    const withArchived = query.archived === 'true'
    return listPage(cursors, query, {
      of: ['policies', workspaceId, withArchived],
      read: (page) => storage.listPolicies(workspaceId, page, withArchived),
      toItem: toPolicy,
      placeOf: byId,
    })
  })

  serve('createPolicy', async ({ body, request, workspace }) => {
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

  serve('readPolicy', async ({ params, workspace }) => {
    return toPolicy(await find(workspace.id, params.policyId))
  })

  serve('listPolicyVersions', async ({ params, query, workspace }) => {
    const { workspaceId, id } = await find(workspace.id, params.policyId)
    return listPage(cursors, query, {
      of: ['policy versions', workspaceId, id],
      read: (page) => storage.listPolicyVersions(workspaceId, id, page),
      toItem: toPolicyVersion,
      placeOf: byNumber,
    })
  })

  serve('createPolicyVersion', async ({ params, body, request, workspace }) => {
    const { policyId } = params
    checkVersion(body)
    const audit = auditOf(request, now(), 'policy.write_version', target(policyId), auditDetail(body))
    const version = newVersion(policyId, body, audit)
    const follows = body.follows === undefined ? null : Number(body.follows)
    const saved = await storage.createPolicyVersion(workspace.id, policyId, version, follows, [audit])
    if (saved === null) return NO_POLICY
    if (saved.outcome === 'conflict') return newerVersion(toPolicyVersion(saved.version))
    return { ...toPolicyVersion(saved.version), isNew: saved.outcome === 'created' }
  })

  serve('readPolicyVersion', async ({ params, workspace }) => {
    return toPolicyVersion(await findVersion(workspace.id, params.policyId, params.version))
  })

  serve('diffPolicyVersions', async ({ params, query, workspace }) => {
    const from = await findVersion(workspace.id, params.policyId, query.from)
    const to = await findVersion(workspace.id, params.policyId, query.to)
    return { ...query, fields: await diffFields(contentOf(from), contentOf(to)) }
  })

  async function find(workspaceId: string, policyId: string) {
    const found = await storage.findPolicy(workspaceId, policyId)
    if (found === null) throw NO_POLICY
    return found
  }

  async function findVersion(workspaceId: string, policyId: string, version: string) {
    const found = await storage.findPolicyVersion(workspaceId, policyId, Number(version))
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
