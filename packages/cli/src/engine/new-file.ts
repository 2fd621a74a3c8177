/** Writes a new file completely or not at all; never overwrites one. */
import { link, open, rm } from 'node:fs/promises'
import path from 'node:path'
import { failed, Stop } from './stop.ts'

/**
 * Writes and syncs a partial file in the same directory, and links it to its final name when `isWhole` returns.
 * Only the owner can read it.
 */
export async function writeNewFile(
  file: string,
  chunks: AsyncIterable<Uint8Array>,
  isWhole: () => Promise<void> | void,
): Promise<void> {
  const partial = path.join(path.dirname(file), `.${path.basename(file)}.${process.pid}.partial`)
  try {
    const handle = await open(partial, 'wx', 0o600)
    try {
      for await (const chunk of chunks) await handle.writeFile(chunk)
      await isWhole()
      await handle.sync()
    } finally {
      await handle.close()
    }
    // Unlike a rename, a link never replaces an existing file.
    await link(partial, file)
    await syncDirectory(path.dirname(file))
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (error instanceof Stop || code === undefined) throw error
    throw failed(`${JSON.stringify(file)} ${REASONS[code] ?? `cannot be written (${code})`}.`)
  } finally {
    await rm(partial, { force: true })
  }
}

const REASONS: Record<string, string> = {
  EEXIST: 'already exists and is never overwritten',
  ENOENT: 'cannot be written: its directory does not exist',
  EACCES: 'cannot be written: permission denied',
  ENOSPC: 'cannot be written: the disk is full',
}

async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
