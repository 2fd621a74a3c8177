import { DAY_MS, isoTime } from '../../storage/engine/times.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { toPolicy } from '../../domain/policies/policy.ts'
import { toPrompt } from '../../domain/policies/prompt.ts'
import { foundOr, refuse, type Refusal } from '../web/reply-error.ts'
import { toAgent } from '../runs/operator-runs.ts'
import { toEnvironment, toWorkspace } from '../tenants/workspaces.ts'
import { checkTenantName } from '../web/field.ts'
import { NO_POLICY } from '../policies/policies.ts'
import { NO_PROMPT } from '../policies/prompts.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'

const NO_WORKSPACE = refuse('not_found', 'The workspace does not exist')
const NO_ENVIRONMENT = refuse('not_found', 'The environment does not exist')
const NO_AGENT = refuse('not_found', 'The agent does not exist')
const NO_ID = refuse('conflict', 'Events identify the agent by its name; send an agentId to rename it')
const VERBS = ['rename', 'archive', 'restore'] as const

export function archivesRoutes({ serve, storage, refreshCredentials }: OperatorDeps): void {
  for (const verb of VERBS) {
    serve(`${verb}Workspace`, async ({ workspace: { id }, at, audit, ...changeRequest }) => {
      const { to, detail } = changeOf(verb, at, changeRequest)
      if ('name' in to) checkTenantName(to.name)
      const row = foundOr(await storage.changeWorkspace(id, to, audit(id, detail)), NO_WORKSPACE)
      if (row === 'name_taken') return refuse('conflict', 'A workspace with this name already exists')
      await refreshCredentials()
      return toWorkspace(row)
    })

    serve(`${verb}Environment`, async ({ environment: { id }, at, audit, ...changeRequest }) => {
      const { to, detail } = changeOf(verb, at, changeRequest)
      if ('name' in to) checkTenantName(to.name)
      const row = foundOr(await storage.changeEnvironment(id, to, audit(id, detail)), NO_ENVIRONMENT)
      if (row === 'name_taken') return refuse('conflict', 'The workspace already has an environment with this name')
      await refreshCredentials()
      return toEnvironment(row)
    })

    serve(`${verb}Prompt`, async ({ params: { promptId: id }, workspace, at, audit, ...changeRequest }) => {
      const { to, detail } = changeOf(verb, at, changeRequest)
      const row = foundOr(await storage.changePrompt(workspace.id, id, to, audit(id, detail)), NO_PROMPT)
      if (row === 'name_taken') return refuse('conflict', 'The workspace already has a prompt with this name')
      return 'deployedIn' in row ? deployed('prompt', row.deployedIn) : toPrompt(row)
    })

    serve(`${verb}Agent`, async ({ params: { agentId: id }, environment, at, audit, ...changeRequest }) => {
      const { to, detail } = changeOf(verb, at, changeRequest)
      const change = 'name' in to ? { displayName: to.name } : to
      const row = foundOr(await storage.changeAgent(environment.id, id, change, audit(id, detail)), NO_AGENT)
      return row === 'no_id' ? NO_ID : toAgent(row)
    })
  }

  serve('deleteEnvironment', async ({ environment: { id, name }, at, audit }) => {
    const deleteAt = at + LIMITS.environmentDeletionDays * DAY_MS
    const [asked] = audit(id, { name, deleteAt: isoTime(deleteAt) })
    const row = foundOr(await storage.orderDeletion(id, deleteAt, asked), NO_ENVIRONMENT)
    if (row === 'in_use') return refuse('conflict', 'The environment is in use; archive it first')
    return toEnvironment(row)
  })

  for (const verb of ['archive', 'restore'] as const) {
    serve(`${verb}Policy`, async ({ params: { policyId: id }, workspace, at, audit }) => {
      const row = await storage.archivePolicy(workspace.id, id, verb === 'archive' ? at : null, audit(id))
      const policy = foundOr(row, NO_POLICY)
      return 'deployedIn' in policy ? deployed('policy', policy.deployedIn) : toPolicy(policy)
    })
  }
}

function changeOf(verb: (typeof VERBS)[number], at: number, changeRequest: { body?: unknown }) {
  if (verb !== 'rename') return { to: { archivedAt: verb === 'archive' ? at : null }, detail: {} }
  // The schema for a rename requires the name.
  const { name } = changeRequest.body as { name: string }
  return { to: { name }, detail: { name } }
}

function deployed(kind: 'prompt' | 'policy', environment: string): Refusal {
  return refuse('conflict', `The ${kind} is deployed in the environment ${environment}; undeploy it there first`)
}
