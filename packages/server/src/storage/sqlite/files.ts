/** Files that must be on the disk before anyone is told so. */
import { closeSync, fsyncSync, openSync } from 'node:fs'
import path from 'node:path'

/** Waits until a file and its name in the directory are on the disk. */
export function syncFile(file: string): void {
  syncPath(file)
  syncDirectory(path.dirname(file))
}

export function syncDirectory(directory: string): void {
  // Windows cannot open a directory; there a rename is durable by itself.
  if (process.platform !== 'win32') syncPath(directory)
}

function syncPath(name: string) {
  const descriptor = openSync(name, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
