import { statSync, type StatsFs } from 'node:fs'
import { statfs } from 'node:fs/promises'

export type Disk = Awaited<ReturnType<typeof watchDisk>>

const EVERY_MS = 1_000

export async function watchDisk(directory: string, minFreeBytes: number) {
  let free: number | null = null
  let reportedFull = false

  async function look() {
    free = await statfs(directory).then(availableBytes, () => null)
    reportedFull = false
  }

  await look()
  const timer = setInterval(() => void look(), EVERY_MS)
  timer.unref()
  return {
    nearlyFull: () => reportedFull || (free !== null && free < minFreeBytes),
    /** True until the next check. */
    reportFull: () => {
      reportedFull = true
    },
    freeBytes: () => free,
    close: () => clearInterval(timer),
  }
}

function availableBytes({ bavail, bsize }: StatsFs): number {
  return bavail * bsize
}

export function sizeBytes(file: string): number | null {
  const [store, log] = [file, `${file}-wal`].map((name) => statSync(name, { throwIfNoEntry: false })?.size)
  return store === undefined ? null : store + (log ?? 0)
}
