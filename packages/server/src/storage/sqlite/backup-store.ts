import { open, rm, stat } from 'node:fs/promises'
import type { BackupCounts, BackupResult } from '../engine/store.ts'
import { syncFile } from './files.ts'
import { sealBackup } from './sealed-backup.ts'

export async function backupStore(target: string, copy: () => Promise<BackupCounts>): Promise<BackupResult> {
  try {
    // Create the file exclusively: VACUUM INTO would also fill another program's empty file.
    await (await open(target, 'wx', 0o600)).close()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return { ok: false, reason: 'exists' }
    throw error
  }
  try {
    await sealBackup(target, await copy())
    syncFile(target)
    return { ok: true, bytes: (await stat(target)).size }
  } catch (error) {
    await rm(target, { force: true })
    throw error
  }
}
