import os from 'node:os'

/** A repeat within this time counts as the same signal: process groups, npm and a parent process deliver it twice. */
const SAME_SIGNAL_MS = 1_000

/** Jobs, threads and the store end sooner on any healthy machine. */
export const CLOSE_MS = 5_000

export function nextSignal(leave: (code: number) => void): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>()
  let firstAt: number | null = null
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => {
      const now = performance.now()
      if (firstAt !== null && now - firstAt > SAME_SIGNAL_MS) leave(128 + os.constants.signals[signal])
      firstAt ??= now
      resolve(signal)
    })
  }
  return promise
}
