import assert from 'node:assert/strict'
import type { Tacho } from '../src/index.ts'

/** Must hold at the end of every test: recorded = accepted + rejected + dropped (all reasons) + queued. */
export function assertBalanced(tacho: Tacho): void {
  const { recorded, accepted, rejected, dropped, queued } = tacho.counters()
  const lost = Object.values(dropped).reduce((sum, count) => sum + count, 0)
  assert.equal(recorded, accepted + rejected + lost + queued, JSON.stringify(tacho.counters()))
}
