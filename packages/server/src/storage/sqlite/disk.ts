/** Watches the disk the store lies on, so that writes stop while there is still room to work. */
import { statSync, type StatsFs } from 'node:fs'
import { statfs } from 'node:fs/promises'
import path from 'node:path'

export interface Disk {
  nearlyFull(): boolean
  freeBytes(): number | null
  close(): void
}

const EVERY_MS = 1_000

export async function watchDisk(directory: string, minFreeBytes: number): Promise<Disk> {
  let free: number | null = null
  async function look() {
    free = await statfs(directory).then(available, () => null)
  }
  await look()
  const timer = setInterval(() => void look(), EVERY_MS)
  timer.unref()
  return {
    nearlyFull: () => free !== null && free < minFreeBytes,
    freeBytes: () => free,
    close: () => clearInterval(timer),
  }
}

function available({ bavail, bsize }: StatsFs): number {
  return bavail * bsize
}

/** Size of a store with its log; null where it cannot be told. */
export function sizeBytes(file: string): number | null {
  const sizes = [file, `${file}-wal`].map((name) => statSync(path.resolve(name), { throwIfNoEntry: false })?.size)
  return sizes[0] === undefined ? null : sizes[0] + (sizes[1] ?? 0)
}
