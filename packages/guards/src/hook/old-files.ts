/** Keeps a folder of state files small. */
import { readdirSync, rmSync, statSync } from 'node:fs'
import path from 'node:path'

interface Bounds {
  /** Unix time in milliseconds. */
  readonly now: number
  readonly keptMs: number
  readonly filesMax: number
}

/** Deletes files that are older than `keptMs`, and the oldest beyond `filesMax`. */
export function deleteOldFiles(folder: string, { now, keptMs, filesMax }: Bounds): void {
  try {
    const names = readdirSync(folder)
    const files = names.map((name) => path.join(folder, name)).map((file) => ({ file, at: statSync(file).mtimeMs }))
    files.sort((a, b) => b.at - a.at)
    for (const [index, { file, at }] of files.entries()) {
      if (index >= filesMax || now - at > keptMs) rmSync(file, { force: true })
    }
  } catch {
    // The folder does not exist yet, or another hook has deleted the file.
  }
}
