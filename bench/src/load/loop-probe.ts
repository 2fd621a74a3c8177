/**
 * Loaded into a server before its program. Reports the longest turn of its event loop since the previous report, in
 * processor time, because other programs may run in between.
 */
import { isMainThread } from 'node:worker_threads'

export interface Held {
  heldMs: number
}

const TICK_MS = 1

if (isMainThread && process.send) {
  let [before, heldMs] = [usedMs(), 0]
  const look = (): void => {
    const used = usedMs()
    heldMs = Math.max(heldMs, used - before)
    before = used
  }
  setInterval(look, TICK_MS).unref()
  process.on('message', () => {
    look()
    process.send?.({ heldMs } satisfies Held)
    heldMs = 0
  })
  // Do not keep the server from ending.
  process.channel?.unref()
}

function usedMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
