import { DAY_MS } from '../../storage/hours.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import type { FastifyRequest } from 'fastify'
import { toPolicy } from '../../domain/policy.ts'
import { toPrompt } from '../../domain/prompt.ts'
import { isoTime } from '../../storage/iso-time.ts'
import type { TenantChange } from '../../storage/workspaces.ts'
import { refuse, type Refusal } from '../reply-error.ts'
import { auditOf } from './audit.ts'
import { toAgent } from './agents.ts'
import { toEnvironment } from './environments.ts'
import { checkTenantName, checkTexts } from '../field.ts'
import { toWorkspace } from './workspaces.ts'
import type { OperatorDeps } from './serve.ts'

const NO_ID = refuse('conflict', 'Events identify the agent by its name; send an agentId to rename it')
const VERBS = ['rename', 'archive', 'restore'] as const

export function archivesRoutes({ serve, storage, now, refreshCredentials }: OperatorDeps): void {
  for (const verb of VERBS) {
    serve(`${verb}Workspace`, async ({ request, workspace: { id }, ...given }) => {
      const change = changeOf(request, verb, given, checkTenantName)
      const row = await storage.changeWorkspace(id, change.to, change.audit('workspace', id))
      if (row === null) return refuse('not_found', 'The workspace does not exist')
      if (row === 'name_taken') return refuse('conflict', 'A workspace with this name already exists')
      await refreshCredentials()
      return toWorkspace(row)
    })

    serve(`${verb}Environment`, async ({ request, environment: { id }, ...given }) => {
      const change = changeOf(request, verb, given, checkTenantName)
      const row = await storage.changeEnvironment(id, change.to, change.audit('environment', id))
      if (row === null) return refuse('not_found', 'The environment does not exist')
      if (row === 'name_taken') return refuse('conflict', 'The workspace already has an environment with this name')
      await refreshCredentials()
      return toEnvironment(row)
    })

    serve(`${verb}Prompt`, async ({ params, request, workspace, ...given }) => {
      const id = params.promptId.toLowerCase()
      const change = changeOf(request, verb, given, (name) => checkTexts({ name }))
      const row = await storage.changePrompt(workspace.id, id, change.to, change.audit('prompt', id))
      if (row === null) return refuse('not_found', 'The workspace does not have this prompt')
      if (row === 'name_taken') return refuse('conflict', 'The workspace already has a prompt with this name')
      return 'deployedIn' in row ? deployed('prompt', row.deployedIn) : toPrompt(row)
    })

    serve(`${verb}Agent`, async ({ params, request, environment, ...given }) => {
      const id = params.agentId.toLowerCase()
      const { to, audit } = changeOf(request, verb, given, (name) => checkTexts({ name }))
      const change = 'name' in to ? { displayName: to.name } : to
      const row = await storage.changeAgent(environment.id, id, change, audit('agent', id))
      if (row === null) return refuse('not_found', 'The agent does not exist')
      return row === 'no_id' ? NO_ID : toAgent(row)
    })
  }

  serve('deleteEnvironment', async ({ request, environment: { id, name } }) => {
    const at = now()
    const deleteAt = at + LIMITS.environmentDeletionDays * DAY_MS
    const detail = { name, deleteAt: isoTime(deleteAt) }
    const asked = auditOf(request, at, 'environment.delete', { kind: 'environment', id }, detail)
    const row = await storage.orderDeletion(id, deleteAt, asked)
    if (row === null) return refuse('not_found', 'The environment does not exist')
    if (row === 'in_use') return refuse('conflict', 'The environment is in use; archive it first')
    return toEnvironment(row)
  })

  for (const verb of ['archive', 'restore'] as const) {
    serve(`${verb}Policy`, async ({ params: { policyId: id }, request, workspace }) => {
      const at = now()
      const audit = [auditOf(request, at, `policy.${verb}`, { kind: 'policy', id })]
      const row = await storage.archivePolicy(workspace.id, id, verb === 'archive' ? at : null, audit)
      if (row === null) return refuse('not_found', 'The workspace does not have this policy')
      return 'deployedIn' in row ? deployed('policy', row.deployedIn) : toPolicy(row)
    })
  }

  function changeOf(
    request: FastifyRequest,
    verb: (typeof VERBS)[number],
    given: { body?: unknown },
    checkName: (name: string) => void,
  ) {
    const at = now()
    const changing = (to: TenantChange, detail = {}) => ({
      to,
      audit: (kind: string, id: string) => [auditOf(request, at, `${kind}.${verb}`, { kind, id }, detail)],
    })
    if (verb !== 'rename') return changing({ archivedAt: verb === 'archive' ? at : null })
    // The schema of a rename requires it.
    const { name } = given.body as { name: string }
    checkName(name)
    return changing({ name }, { name })
  }
}

function deployed(kind: 'prompt' | 'policy', environment: string): Refusal {
  return refuse('conflict', `The ${kind} is deployed in the environment ${environment}; undeploy it there first`)
}
