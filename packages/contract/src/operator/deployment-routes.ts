import { BODY_ERRORS } from '../body-errors.ts'
import { LIMITS } from '../limits.ts'
import type { OperatorRoute } from './access.ts'
import {
  DeploymentChangePage,
  DeploymentChangesQuery,
  DeploymentPage,
  NewDeployment,
  NewPromotion,
  NewRollback,
  PublicationResult,
} from './deployment.ts'
import { EnvironmentParams } from './environment.ts'
import { ListQuery } from './workspace.ts'

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
  errors: ['not_found', 'conflict', ...BODY_ERRORS],
} as const

/** Which versions are in force in an environment. Each write is one publication: all of it, or nothing. */
export const deploymentRoutes = {
  listDeployments: {
    ...read,
    path: '/environments/{environmentId}/deployments',
    summary: 'List what is in force',
    params: EnvironmentParams,
    query: ListQuery,
    reply: DeploymentPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  deploy: {
    ...publish,
    path: '/environments/{environmentId}/deployments',
    summary: 'Put versions in force, or take prompts and policies out of force',
    body: NewDeployment,
  },
  promote: {
    ...publish,
    path: '/environments/{environmentId}/deployments/promote',
    summary: 'Put in force what is in force in another environment of the workspace; what that one lacks stays',
    body: NewPromotion,
  },
  rollBack: {
    ...publish,
    path: '/environments/{environmentId}/deployments/rollback',
    summary: 'Put in force again the version before the present one; again, and it is the one before that',
    body: NewRollback,
  },
  listDeploymentChanges: {
    ...read,
    path: '/environments/{environmentId}/deployments/changes',
    summary: 'List what was changed, by whom and when, the newest first',
    params: EnvironmentParams,
    query: DeploymentChangesQuery,
    reply: DeploymentChangePage,
    errors: ['not_found', 'invalid_cursor'],
  },
} as const satisfies Record<string, OperatorRoute>
