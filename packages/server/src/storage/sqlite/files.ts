import { chmodSync, closeSync, fsyncSync, openSync, statSync } from 'node:fs'
import path from 'node:path'

/** Others may read the directory. SQLite gives a new log the mode of its database. */
export function keepPrivate(file: string): void {
  closeSync(openSync(file, 'a', 0o600))
  for (const each of [file, `${file}-wal`, `${file}-shm`]) {
    const found = statSync(each, { throwIfNoEntry: false })
    if (found && (found.mode & 0o077) !== 0 && mayChange(found.uid)) chmodSync(each, 0o600)
  }
}

/** A process can change the mode only of its own files, even if it can write others. */
function mayChange(owner: number): boolean {
  const user = process.getuid?.()
  return user === 0 || user === owner
}

export function syncFile(file: string): void {
  syncPath(file)
  syncDirectory(path.dirname(file))
}

export function syncDirectory(directory: string): void {
  // Windows cannot open a directory; there a rename is durable without it.
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
