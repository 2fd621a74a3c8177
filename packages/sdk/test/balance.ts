import assert from 'node:assert/strict'
import type { Tacho } from '../src/index.ts'

/** The rule of every test: recorded = accepted + rejected + dropped by reason + queued. */
export function assertBalanced(tacho: Tacho): void {
  const { recorded, accepted, rejected, dropped, queued } = tacho.counters()
  const lost = Object.values(dropped).reduce((sum, count) => sum + count, 0)
  assert.equal(recorded, accepted + rejected + lost + queued, JSON.stringify(tacho.counters()))
}
