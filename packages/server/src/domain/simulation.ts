/** Read shape of simulations. */
import type { Simulation } from '@tacho/contract/operator/simulation.ts'
import type { SimulationRow } from '../storage/simulations.ts'
import { isoTime } from './run.ts'

export function toSimulation({ createdAt, endedAt, ...row }: SimulationRow): Simulation {
  return { ...row, createdAt: isoTime(createdAt), endedAt: endedAt === null ? null : isoTime(endedAt) }
}
