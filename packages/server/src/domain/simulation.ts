import type { Simulation } from '@tacho/contract/operator/simulation.ts'
import type { SimulationRow } from '../storage/simulations.ts'
import { isoOf } from './shown.ts'

export function toSimulation(row: SimulationRow): Simulation {
  return { ...row, ...isoOf(row, 'createdAt', 'endedAt') }
}
