/**
 * What only the start needed (modules in the making, code that runs once) stays in memory for as long as nothing is
 * collected: on a server that nobody asks, for ever. So it is given back once, by each thread for itself.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const LOOK_MS = 5_000
/** Share of the time between two looks that the thread may have worked; collecting holds it up for 10 to 60 ms. */
const IDLE = 0.05

/** Collects everything that can be made again, as soon as this thread has nothing to do. */
export function releaseMemoryWhenIdle(): void {
  let last = performance.eventLoopUtilization()
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    if (utilization > IDLE) return
    clearInterval(timer)
    collect()
  }, LOOK_MS)
  timer.unref()
}

function collect(): void {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as NodeJS.GCFunction
  gc({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
