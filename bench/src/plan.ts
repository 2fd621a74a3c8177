/** Duration and size of the measurements. */
export interface Plan {
  size: 'quick' | 'default' | 'full'
  /** Each round measures Tacho and the bare limit in turn. The median counts. */
  rounds: number
  /** Length of one measurement. */
  seconds: number
  warmUpSeconds: number
  idleSeconds: number
  /** Events in the stores of the read benchmarks. */
  storedEvents: number
  longRunEvents: number
  /** Maximum number of connections that send load while recording. */
  connectionsMax: number
  /** Number of wheel turns, and of key presses, on a page. */
  turns: number
}

const QUICK: Plan = {
  size: 'quick',
  rounds: 1,
  seconds: 0.05,
  warmUpSeconds: 0.05,
  idleSeconds: 0.2,
  storedEvents: 2_000,
  longRunEvents: 1_000,
  connectionsMax: 2,
  turns: 5,
}

const DEFAULT: Plan = {
  size: 'default',
  rounds: 5,
  seconds: 3,
  warmUpSeconds: 3,
  idleSeconds: 20,
  storedEvents: 1_000_000,
  longRunEvents: 30_000,
  connectionsMax: 200,
  turns: 60,
}

export const PLANS: Record<Plan['size'], Plan> = {
  quick: QUICK,
  default: DEFAULT,
  full: { ...DEFAULT, size: 'full', storedEvents: 10_000_000 },
}
