import path from 'node:path'
import type { Config } from '../config/config.ts'
import { StoreRefused } from '../storage/storage.ts'

/** Why the server cannot start, in one sentence for people; null when it is none of the usual reasons. */
export function startErrorText(error: unknown, { host, port, dataDir }: Config): string | null {
  if (error instanceof StoreRefused) return error.message
  if (!(error instanceof Error)) return null
  const { code = '', syscall = '' } = error as NodeJS.ErrnoException
  // A worker is told of the listening that its parent tried as `bind`.
  if (['listen', 'bind', 'getaddrinfo'].includes(syscall)) {
    if (code === 'EADDRINUSE') {
      return `Port ${port} on ${host} is taken by another program; stop that one, or choose another port with --port.`
    }
    if (code === 'EACCES') return `Port ${port} needs rights that this user lacks; choose one from 1024 up with --port.`
    return `${JSON.stringify(host)} is no address of this machine that can be listened on (${code}); see --host.`
  }
  if (DAMAGE_CODES.test(code)) {
    return `The store in ${path.resolve(dataDir)} is damaged or none of Tacho's (${code}); see tacho restore.`
  }
  if (DIRECTORY_CODES.test(code)) {
    return `The data directory ${path.resolve(dataDir)} cannot be used (${code}); see --data-dir.`
  }
  return null
}

const DAMAGE_CODES = /^SQLITE_(NOTADB|CORRUPT)/
const DIRECTORY_CODES =
  /^(EACCES|EPERM|EROFS|ENOTDIR|EEXIST|ENOSPC|ENOENT|EDQUOT|ENAMETOOLONG|SQLITE_(CANTOPEN|READONLY|FULL|IOERR))/
