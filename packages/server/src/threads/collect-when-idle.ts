/**
 * V8 collects garbage when code allocates, and an idle thread does not: a third of its heap would stay garbage.
 *
 *   used --idle for a while, and the heap has grown--> collected --the heap grows--> used
 */
import { performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'

/** Blocks the thread for 10 to 130 ms, on a busy machine too. A regular collection would keep the free pages for later. */
type Collect = (options: { type: 'major'; flavor: 'last-resort'; execution: 'async' }) => Promise<void>

const LOOK_MS = 5_000
/** Looks in a row that find the thread idle: soon after the start, and later only when work is over. */
const QUIET_LOOKS = { first: 1, later: 12 }
/** Background jobs, which look for work every second, take a third of it. */
const IDLE_SHARE = 0.01
const GROWN_BYTES = 6 * 1_048_576

export function collectWhenIdle({ lookMs = LOOK_MS, quiet = QUIET_LOOKS } = {}): void {
  const { gc } = globalThis as { gc?: Collect }
  if (gc === undefined) return
  let kept = 0
  let quietLooks = 0
  let seen = performance.eventLoopUtilization()

  async function look(collect: Collect): Promise<void> {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, seen)
    seen = now
    quietLooks = utilization < IDLE_SHARE ? quietLooks + 1 : 0
    if (quietLooks < (kept === 0 ? quiet.first : quiet.later)) return
    if (getHeapStatistics().total_heap_size < kept + GROWN_BYTES) return
    await collect({ type: 'major', flavor: 'last-resort', execution: 'async' })
    kept = getHeapStatistics().total_heap_size
    quietLooks = 0
  }

  setInterval(() => void look(gc), lookMs).unref()
}
