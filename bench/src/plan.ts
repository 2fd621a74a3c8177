/** How long and how large the measurements are. */
export interface Plan {
  size: 'quick' | 'default' | 'full'
  /** Each round measures us and the bare limit, in turn. The median counts. */
  rounds: number
  /** Of one measurement. */
  seconds: number
  warmUpSeconds: number
  idleSeconds: number
  /** Events in the stores that are read from. */
  storedEvents: number
  longRunEvents: number
}

const QUICK: Plan = {
  size: 'quick',
  rounds: 1,
  seconds: 0.3,
  warmUpSeconds: 0.2,
  idleSeconds: 1,
  storedEvents: 20_000,
  longRunEvents: 3_000,
}

const DEFAULT: Plan = {
  size: 'default',
  rounds: 5,
  seconds: 3,
  warmUpSeconds: 3,
  idleSeconds: 20,
  storedEvents: 1_000_000,
  longRunEvents: 30_000,
}

export const PLANS: Record<Plan['size'], Plan> = {
  quick: QUICK,
  default: DEFAULT,
  full: { ...DEFAULT, size: 'full', storedEvents: 10_000_000 },
}
