import type { FastifyRequest } from 'fastify'
import type { NewPolicyVersion } from '@tacho/contract/policies/policy.ts'
import { defaultOnError } from '@tacho/contract/engine/words.ts'
import { templateFault } from '@tacho/contract/policies/call-template.ts'
import { diffFields } from '../../domain/policies/diff.ts'
import { approversOf, grantsBySeverity, toPolicy, toPolicyVersion } from '../../domain/policies/policy.ts'
import { pick } from '../../domain/web/shown.ts'
import type { NewPolicyVersionRow, PolicyVersionRow } from '../../storage/policies/policies.ts'
import { holderOf } from '../tenants/rate-limit.ts'
import type { BodyValidator } from '../record/body-validator.ts'
import { foundOr, refuse, type Refusal } from '../web/reply-error.ts'
import { listById, listPage, byNumber } from '../web/paging.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'

export const NO_POLICY = refuse('not_found', 'The workspace does not have this policy')
const TWO_DO_WHAT =
  'Only a policy with the action REQUIRE_APPROVAL can need two approvers: send approvers 1, or that action'
const NO_VERSION = refuse('not_found', 'The policy does not have this version')

export function policiesRoutes({ serve, storage, bodyValidator }: OperatorDeps): void {
  serve('listPolicies', ({ query, workspace, paging }) =>
    listById(paging, (page) => storage.listPolicies(workspace.id, page, query.archived === 'true'), toPolicy),
  )

  serve('createPolicy', async ({ request, body, workspace, actor, at, audit }) => {
    await checkCondition(bodyValidator, body.condition, request)
    const first = newVersion(body.policyId, body, actor.name, at)
    checkApprovers(first)
    checkTemplate(first)
    const policy = { id: body.policyId, workspaceId: workspace.id, createdAt: at }
    const outcome = await storage.createPolicy(policy, first, audit(policy.id, auditDetail(first)))
    if (outcome === 'no_workspace') return refuse('not_found', 'The workspace does not exist')
    if (outcome === 'id_taken') return refuse('conflict', 'The workspace already has a policy with this id')
    const newest = { policyId: policy.id, number: 1, importedAt: null, ...first }
    return toPolicy({ ...policy, archivedAt: null, newest })
  })

  serve('readPolicy', async ({ params, workspace }) => {
    return toPolicy(await find(workspace.id, params.policyId))
  })

  serve('listPolicyVersions', async ({ params, workspace, paging }) => {
    const { workspaceId, id } = await find(workspace.id, params.policyId)
    return listPage(paging, (page) => storage.listPolicyVersions(workspaceId, id, page), toPolicyVersion, byNumber)
  })

  serve('createPolicyVersion', async ({ request, params: { policyId: id }, body, workspace, actor, at, audit }) => {
    await checkCondition(bodyValidator, body.condition, request)
    const version = newVersion(id, body, actor.name, at)
    const { newest } = await find(workspace.id, id)
    // Only an explicit value removes the requirement of two people, because older clients do not know it.
    version.approvers = body.approvers ? version.approvers : newest.approvers
    if (!body.grants && newest.grants === 'never') version.grants = 'never'
    // Older clients do not know the template either, so only an empty text removes it.
    if (typeof body.template !== 'string') version.template = newest.template
    checkApprovers(version)
    checkTemplate(version)
    // A pipeline that sends an older policy again, unchanged, does not change its meaning.
    if (!body.onError && isSame(newest, { ...version, onError: null })) version.onError = null
    const follows = body.follows === undefined ? null : Number(body.follows)
    const entries = audit(id, auditDetail(version))
    const saved = foundOr(await storage.createPolicyVersion(workspace.id, id, version, follows, entries), NO_POLICY)
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
    return foundOr(await storage.findPolicy(workspaceId, policyId), NO_POLICY)
  }

  async function findVersion(workspaceId: string, policyId: string, version: string) {
    return intactOr(await storage.findPolicyVersion(workspaceId, policyId, Number(version)), NO_VERSION)
  }
}

function newVersion(policyId: string, body: NewPolicyVersion, author: string, createdAt: number): NewPolicyVersionRow {
  const { name, description, condition, severity, action, note } = body
  const onError = body.onError ?? defaultOnError(body)
  // One approver is stored as null, as in older versions.
  const approvers = body.approvers === 2 ? 2 : null
  // Null also stands for the rule that follows from the severity.
  const grants = body.grants === grantsBySeverity(severity) ? null : (body.grants ?? null)
  const template = body.template || null
  const content = {
    description: description ?? null,
    condition,
    severity,
    action,
    onError,
    approvers,
    grants,
    template,
  }
  return { name: name ?? policyId, ...content, author, note: note ?? null, createdAt }
}

function checkApprovers({ approvers, action }: NewPolicyVersionRow): void {
  if (approvers !== null && action !== 'REQUIRE_APPROVAL') throw refuse('invalid_request', TWO_DO_WHAT)
}

function checkTemplate({ template }: NewPolicyVersionRow): void {
  const fault = template === null ? null : templateFault(template)
  if (fault !== null) {
    throw refuse('invalid_request', `template: ${fault}`, { errors: [{ path: '/template', message: fault }] })
  }
}

function auditDetail({ severity, action, onError, approvers, grants }: NewPolicyVersionRow) {
  return { severity, action, onError, ...(approvers !== null && { approvers }), ...(grants !== null && { grants }) }
}

function contentOf(version: Omit<PolicyVersionRow, 'policyId' | 'number' | 'importedAt'>) {
  return {
    ...pick(version, 'condition', 'severity', 'action', 'onError'),
    approvers: String(approversOf(version)),
    grants: version.grants ?? grantsBySeverity(version.severity),
    ...pick(version, 'template', 'name', 'description'),
  }
}

function isSame(one: PolicyVersionRow, other: NewPolicyVersionRow): boolean {
  return JSON.stringify(contentOf(one)) === JSON.stringify(contentOf(other))
}

/** Compiles the condition on a thread, because patterns would delay other requests. */
export async function checkCondition(
  bodyValidator: BodyValidator,
  condition: string,
  request: FastifyRequest,
): Promise<void> {
  const faults = await bodyValidator.conditionFaults(condition, holderOf(request))
  if ('ok' in faults) throw refuse(faults.code, faults.detail)
  if (faults[0]) throw refuse('invalid_request', `condition ${faults[0].message}`, { errors: faults })
}

/** The version of a policy or a prompt, or an error if it is missing or damaged. */
export function intactOr<Version extends { number: number; damaged?: true }>(
  row: Version | null,
  none: Refusal,
): Version {
  const version = foundOr(row, none)
  if (!version.damaged) return version
  const detail = `The stored version ${version.number} is damaged. Write another one, or restore a backup`
  throw refuse('configuration_damaged', detail)
}

export function newerVersion(newest: { version: string; author: string }): Refusal {
  const detail = `A newer version exists: ${newest.version}, by ${newest.author}`
  return refuse('conflict', detail, { current: { ...newest } })
}
