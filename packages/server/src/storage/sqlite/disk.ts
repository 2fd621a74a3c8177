import { statSync, type Stats, type StatsFs } from 'node:fs'
import { stat, statfs } from 'node:fs/promises'

export type Disk = Awaited<ReturnType<typeof watchDisk>>

const EVERY_MS = 1_000

/** Also whether the store at its path is still the one that is open. `onGone` is called once. */
export async function watchDisk(directory: string, file: string, minFreeBytes: number, onGone: (why: string) => void) {
  let free: number | null = null
  let reportedFull = false
  let gone: string | null = null
  const opened = statSync(file, { throwIfNoEntry: false })

  async function look() {
    // A removed directory keeps its last figure, so that no metric vanishes.
    free = await statfs(directory).then(availableBytes, () => free)
    reportedFull = false
    if (opened !== undefined && gone === null) await lookAtFile(opened)
  }

  async function lookAtFile({ dev, ino }: Stats): Promise<void> {
    const found = await stat(file).catch((error: NodeJS.ErrnoException) => error)
    if (found instanceof Error) {
      // Others, such as EACCES or EIO, say nothing about the file.
      if (found.code !== 'ENOENT' && found.code !== 'ENOTDIR') return
      gone = 'The file of the store was removed while it was open'
    } else if (found.dev !== dev || found.ino !== ino)
      gone = 'Another file took the place of the store while it was open'
    if (gone !== null) onGone(gone)
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
    gone: () => gone,
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
