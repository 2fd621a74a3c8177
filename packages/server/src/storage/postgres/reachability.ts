/**
 *   reachable --cannot connect--> silent --pause over--> retried by the next request --connected--> reachable
 *                                   ^------------------------cannot connect----'
 *
 * In state silent, requests fail at once instead of waiting. Pauses double up to LONGEST_PAUSE_MS.
 */
import { connectError } from './errors.ts'

export type Reachability = ReturnType<typeof createReachability>

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1_000

export function createReachability(onChange: (reachable: boolean, why: string) => void) {
  let failures = 0
  let silentUntil = 0
  let lastFailure: unknown = null

  return {
    isReachable: () => failures === 0,
    check(): void {
      if (performance.now() < silentUntil) throw connectError(lastFailure)
    },
    connected(): void {
      if (failures > 0) onChange(true, 'the database answers again')
      failures = 0
      silentUntil = 0
    },
    failed(error: unknown): void {
      lastFailure = error
      const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures)
      // Jitter, so that nodes do not all reconnect at the same moment.
      silentUntil = performance.now() + pause * (0.5 + Math.random() / 2)
      if (failures++ === 0) onChange(false, error instanceof Error ? error.message : String(error))
    },
  }
}
