import { BODY_ERRORS } from '../body-errors.ts'
import { LIMITS } from '../limits.ts'
import type { OperatorRoute } from './access.ts'
import { EnvironmentParams } from './environment.ts'
import { CreationHeaders } from './idempotency.ts'
import { NewSimulation, Simulation, SimulationPage, SimulationParams } from './simulation.ts'
import { ListQuery } from './workspace.ts'

const common = { tag: 'Policies', scopes: [] } as const

/** Simulations of policies on recorded tool calls, to run before deployment. */
export const simulationRoutes = {
  createSimulation: {
    ...common,
    access: 'admin',
    method: 'POST',
    path: '/environments/{environmentId}/simulations',
    summary: 'Simulate a policy on the recorded tool calls of the last days, in the background',
    params: EnvironmentParams,
    headers: CreationHeaders,
    body: NewSimulation,
    bodyBytes: LIMITS.operatorBodyBytes,
    status: 202,
    reply: Simulation,
    errors: ['not_found', 'conflict', ...BODY_ERRORS],
  },
  listSimulations: {
    ...common,
    access: 'viewer',
    method: 'GET',
    path: '/environments/{environmentId}/simulations',
    summary: 'List the stored simulations, newest first',
    params: EnvironmentParams,
    query: ListQuery,
    status: 200,
    reply: SimulationPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  readSimulation: {
    ...common,
    access: 'viewer',
    method: 'GET',
    path: '/environments/{environmentId}/simulations/{simulationId}',
    summary: 'Read the progress and result of a simulation',
    params: SimulationParams,
    status: 200,
    reply: Simulation,
    errors: ['not_found'],
  },
  cancelSimulation: {
    ...common,
    access: 'admin',
    method: 'POST',
    path: '/environments/{environmentId}/simulations/{simulationId}/cancel',
    summary: 'Cancel a simulation; a finished one stays unchanged',
    params: SimulationParams,
    status: 200,
    reply: Simulation,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
