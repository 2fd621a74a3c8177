/**
 * Packages that are too large to install everywhere. With TACHO_TEST_FRAMEWORKS=1, each is installed once, in a separate folder
 * below .cache/.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const INSTALL_MS = 600_000
const LOOK_MS = 200

export interface LargePackages {
  /** Why the tests are skipped; false: they run. */
  readonly skip: string | false
  readonly folder: string
  load(name: string): Promise<unknown>
}

/** The folder of these packages, with their versions, for example `zod@4.6.7`. They may not be installed yet. */
export function folderOf(packages: readonly string[]): string {
  return path.join(ROOT, '.cache', `npm-${packages.join('+').replaceAll(/[^\w.+-]/g, '_')}`)
}

export function largePackages(size: string, ...packages: readonly string[]): LargePackages {
  const folder = folderOf(packages)
  const skip = process.env['TACHO_TEST_FRAMEWORKS'] === undefined && `needs ${size}: set TACHO_TEST_FRAMEWORKS=1`
  const isMissing = skip === false && !installPackages(packages)
  return {
    skip: isMissing ? `${packages[0]} could not be installed` : skip,
    folder,
    load: (name) => {
      const require = createRequire(path.join(folder, 'package.json'))
      return import(pathToFileURL(require.resolve(name)).href)
    },
  }
}

/** Returns whether the packages are installed. One process installs them, and the others wait for it. */
export function installPackages(packages: readonly string[]): boolean {
  const folder = folderOf(packages)
  const lock = `${folder}.lock`
  mkdirSync(path.dirname(folder), { recursive: true })
  while (!existsSync(folder)) {
    if (takeLock(lock)) {
      try {
        return existsSync(folder) || install(packages, folder)
      } finally {
        rmSync(lock, { force: true })
      }
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_MS)
  }
  return true
}

/** Takes the lock, a file with the id of its process. The file of a dead process does not count. */
function takeLock(lock: string): boolean {
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx' })
    return true
  } catch {
    const owner = Number(readSafely(() => readFileSync(lock, 'utf8'), ''))
    if (owner > 0 && !readSafely(() => process.kill(owner, 0), false)) rmSync(lock, { force: true })
    return false
  }
}

function install(packages: readonly string[], folder: string): boolean {
  // Rename at the end, so that an interrupted installation does not look complete.
  const partial = `${folder}.${process.pid}`
  mkdirSync(partial, { recursive: true })
  writeFileSync(path.join(partial, 'package.json'), '{ "private": true }')
  const env = { ...process.env, PATH: `${path.join(ROOT, 'node_modules/.bin')}${path.delimiter}${process.env['PATH']}` }
  const args = ['install', '--no-audit', '--no-fund', '--save-exact', ...packages]
  const { status } = spawnSync('npm', args, { cwd: partial, env, stdio: 'ignore', timeout: INSTALL_MS })
  if (status === 0) renameSync(partial, folder)
  else rmSync(partial, { recursive: true, force: true })
  return status === 0
}

function readSafely<T>(read: () => T, otherwise: T): T {
  try {
    return read()
  } catch {
    return otherwise
  }
}
