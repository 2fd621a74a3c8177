import path from 'node:path'
import type { Config } from '../config/config.ts'
import { StorageError, StoreRefused } from '../storage/engine/store.ts'

export function startErrorText(error: unknown, { host, port, dataDir }: Config): string | null {
  if (error instanceof StoreRefused) return error.message
  if (error instanceof StorageError && error.code === 'storage_full') {
    return `The disk of the data directory ${path.resolve(dataDir)} is full. Free space on it: nothing that was acknowledged is lost.`
  }
  if (!(error instanceof Error)) return null
  const { code = '', syscall = '' } = error as NodeJS.ErrnoException
  // In a worker, listen errors arrive as `bind`.
  if (['listen', 'bind', 'getaddrinfo'].includes(syscall)) {
    if (code === 'EADDRINUSE') {
      return `Port ${port} on ${host} is in use by another program. Stop that program, or choose another port with --port.`
    }
    if (code === 'EACCES')
      return `This user has no permission for port ${port}. Choose a port from 1024 up with --port.`
    return `${JSON.stringify(host)} is not an address this machine can listen on (${code}). Check --host.`
  }
  if (DAMAGE_CODES.test(code)) {
    return `The store in ${path.resolve(dataDir)} is damaged or not a Tacho store (${code}). To restore a backup, use tacho restore.`
  }
  if (DIRECTORY_CODES.test(code)) {
    return `The data directory ${path.resolve(dataDir)} cannot be used (${code}). Check --data-dir.`
  }
  return null
}

const DAMAGE_CODES = /^SQLITE_(NOTADB|CORRUPT)/
const DIRECTORY_CODES =
  /^(EACCES|EPERM|EROFS|ENOTDIR|EEXIST|ENOSPC|ENOENT|EDQUOT|ENAMETOOLONG|SQLITE_(CANTOPEN|READONLY|FULL|IOERR))/
