import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/access.ts'
import { ConfigurationClientPage, ConfigurationClientsQuery } from './configuration-client.ts'
import {
  DeploymentChangePage,
  DeploymentChangesQuery,
  DeploymentPage,
  NewDeployment,
  NewPromotion,
  NewRollback,
  PublicationResult,
} from './deployment.ts'
import { EnvironmentParams } from '../tenants/environment.ts'
import { ListQuery } from '../tenants/workspace.ts'

const read = { tag: 'Deployments', scopes: [], access: 'viewer', method: 'GET', status: 200 } as const
const publish = {
  tag: 'Deployments',
  scopes: [],
  access: 'admin',
  method: 'POST',
  status: 200,
  params: EnvironmentParams,
  reply: PublicationResult,
  bodyBytes: LIMITS.operatorBodyBytes,
  errors: ['not_found', 'conflict'],
} as const

/** Which versions are deployed in an environment. Each write is one publication and applies fully or not at all. */
export const deploymentRoutes = {
  listDeployments: {
    ...read,
    path: '/environments/{environmentId}/deployments',
    summary: 'List deployed versions',
    params: EnvironmentParams,
    query: ListQuery,
    reply: DeploymentPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  deploy: {
    ...publish,
    path: '/environments/{environmentId}/deployments',
    audit: { action: 'configuration.deploy', target: 'environment' },
    summary: 'Deploy versions, or remove prompts and policies from the environment',
    body: NewDeployment,
  },
  promote: {
    ...publish,
    path: '/environments/{environmentId}/deployments/promote',
    audit: { action: 'configuration.promote', target: 'environment' },
    summary: 'Promote versions deployed in another environment of the workspace; items missing there stay unchanged',
    body: NewPromotion,
  },
  rollBack: {
    ...publish,
    path: '/environments/{environmentId}/deployments/rollback',
    audit: { action: 'configuration.roll_back', target: 'environment' },
    summary: 'Roll back one version; repeat to go further back',
    body: NewRollback,
  },
  listDeploymentChanges: {
    ...read,
    path: '/environments/{environmentId}/deployments/changes',
    summary: 'List what changed, who changed it and when, newest first',
    params: EnvironmentParams,
    query: DeploymentChangesQuery,
    reply: DeploymentChangePage,
    errors: ['not_found', 'invalid_cursor'],
  },
  listConfigurationClients: {
    ...read,
    path: '/environments/{environmentId}/clients',
    summary: 'List the clients of the runtime configuration and the revision that each has',
    params: EnvironmentParams,
    query: ConfigurationClientsQuery,
    reply: ConfigurationClientPage,
    errors: ['not_found', 'invalid_cursor'],
  },
} as const satisfies Record<string, OperatorRoute>
