/**
 * Loaded into a server before its program: how long one turn of its event loop held the processor since it was last asked.
 * It counts processor time, because the machine may run other programs in between.
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
  // It must not keep the server from ending.
  process.channel?.unref()
}

function usedMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
