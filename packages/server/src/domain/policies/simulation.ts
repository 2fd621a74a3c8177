import type { Simulation } from '@tacho/contract/policies/simulation.ts'
import type { SimulationRow } from '../../storage/policies/simulations.ts'
import { isoOf } from '../web/shown.ts'

export function toSimulation(row: SimulationRow): Simulation {
  return { ...row, ...isoOf(row, 'createdAt', 'endedAt') }
}
