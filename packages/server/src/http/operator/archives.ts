import { DAY_MS } from '../../storage/hours.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { toPolicy } from '../../domain/policy.ts'
import { toPrompt } from '../../domain/prompt.ts'
import { isoTime } from '../../domain/run.ts'
import type { AuditEntry } from '../../storage/audit.ts'
import type { TenantChange } from '../../storage/workspaces.ts'
import type { Deps } from '../deps.ts'
import { refuse, type Refusal } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { environmentOf, workspaceOf } from './access.ts'
import { auditOf } from './audit.ts'
import { refreshCredentials } from './refresh-credentials.ts'
import { toEnvironment } from './environments.ts'
import { checkTenantName, checkTexts } from '../field.ts'
import { toWorkspace } from './workspaces.ts'

const VERBS = { rename: 'Rename', archive: 'Archive', restore: 'Restore' } as const
type Verb = keyof typeof VERBS

export function archivesRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, now } = deps

  for (const verb of Object.keys(VERBS) as Verb[]) {
    serveRoute(app, OPERATOR_ROUTES[`${verb}Workspace`], deps, async ({ request, ...given }) => {
      const { id } = workspaceOf(request)
      const change = changeOf(request, verb, given, checkTenantName)
      const row = await storage.changeWorkspace(id, change.to, change.audit('workspace', id))
      if (row === null) return refuse('not_found', 'The workspace does not exist')
      if (row === 'name_taken') return refuse('conflict', 'A workspace with this name already exists')
      await refreshCredentials(deps)
      return toWorkspace(row)
    })

    serveRoute(app, OPERATOR_ROUTES[`${verb}Environment`], deps, async ({ request, ...given }) => {
      const { id } = environmentOf(request)
      const change = changeOf(request, verb, given, checkTenantName)
      const row = await storage.changeEnvironment(id, change.to, change.audit('environment', id))
      if (row === null) return refuse('not_found', 'The environment does not exist')
      if (row === 'name_taken') return refuse('conflict', 'The workspace already has an environment with this name')
      await refreshCredentials(deps)
      return toEnvironment(row)
    })

    serveRoute(app, OPERATOR_ROUTES[`${verb}Prompt`], deps, async ({ params, request, ...given }) => {
      const id = params.promptId.toLowerCase()
      const change = changeOf(request, verb, given, (name) => checkTexts({ name }))
      const row = await storage.changePrompt(workspaceOf(request).id, id, change.to, change.audit('prompt', id))
      if (row === null) return refuse('not_found', 'The workspace does not have this prompt')
      if (row === 'name_taken') return refuse('conflict', 'The workspace already has a prompt with this name')
      return 'deployedIn' in row ? deployed('prompt', row.deployedIn) : toPrompt(row)
    })
  }

  serveRoute(app, OPERATOR_ROUTES.deleteEnvironment, deps, async ({ request }) => {
    const { id, name } = environmentOf(request)
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
    serveRoute(app, OPERATOR_ROUTES[`${verb}Policy`], deps, async ({ params: { policyId: id }, request }) => {
      const at = now()
      const audit = [auditOf(request, at, `policy.${verb}`, { kind: 'policy', id })]
      const row = await storage.archivePolicy(workspaceOf(request).id, id, verb === 'archive' ? at : null, audit)
      if (row === null) return refuse('not_found', 'The workspace does not have this policy')
      return 'deployedIn' in row ? deployed('policy', row.deployedIn) : toPolicy(row)
    })
  }

  function changeOf(
    request: FastifyRequest,
    verb: Verb,
    given: { body?: unknown },
    checkName: (name: string) => void,
  ): Changing {
    const at = now()
    const changing = (to: TenantChange, detail = {}): Changing => ({
      to,
      audit: (kind, id) => [auditOf(request, at, `${kind}.${verb}`, { kind, id }, detail)],
    })
    if (verb !== 'rename') return changing({ archivedAt: verb === 'archive' ? at : null })
    // The schema of a rename requires it.
    const { name } = given.body as { name: string }
    checkName(name)
    return changing({ name }, { name })
  }
}

interface Changing {
  to: TenantChange
  audit(kind: string, id: string): AuditEntry[]
}

function deployed(kind: 'prompt' | 'policy', environment: string): Refusal {
  return refuse('conflict', `The ${kind} is deployed in the environment ${environment}; undeploy it there first`)
}
