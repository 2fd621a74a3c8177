import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/access.ts'
import { EnvironmentParams } from '../tenants/environment.ts'
import { CreationHeaders } from '../web/idempotency.ts'
import { NewSimulation, Simulation, SimulationPage, SimulationParams } from './simulation.ts'
import { ListQuery } from '../tenants/workspace.ts'

const common = { tag: 'Policies', scopes: [] } as const
const read = { ...common, access: 'viewer', method: 'GET', status: 200 } as const
const write = { ...common, access: 'admin', method: 'POST' } as const

const SIMULATIONS = '/environments/{environmentId}/simulations'

/** Simulations of policies on recorded tool calls, to run before deployment. */
export const simulationRoutes = {
  createSimulation: {
    ...write,
    path: SIMULATIONS,
    audit: { action: 'policy.simulate', target: 'simulation' },
    summary: 'Simulate a policy on the recorded tool calls of the last days, in the background',
    params: EnvironmentParams,
    headers: CreationHeaders,
    body: NewSimulation,
    bodyBytes: LIMITS.operatorBodyBytes,
    status: 202,
    reply: Simulation,
    errors: ['not_found', 'conflict'],
  },
  listSimulations: {
    ...read,
    path: SIMULATIONS,
    summary: 'List the stored simulations, newest first',
    params: EnvironmentParams,
    query: ListQuery,
    reply: SimulationPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  readSimulation: {
    ...read,
    path: `${SIMULATIONS}/{simulationId}`,
    summary: 'Read the progress and result of a simulation',
    params: SimulationParams,
    reply: Simulation,
    errors: ['not_found'],
  },
  cancelSimulation: {
    ...write,
    path: `${SIMULATIONS}/{simulationId}/cancel`,
    audit: { action: 'policy.cancel_simulation', target: 'simulation' },
    summary: 'Cancel a simulation; a finished one stays unchanged',
    params: SimulationParams,
    status: 200,
    reply: Simulation,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
