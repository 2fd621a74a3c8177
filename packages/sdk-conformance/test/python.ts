/** The environment of the Python SDK's tests: a virtual one under .cache/, with pinned packages. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const PYTHON_SDK = fileURLToPath(new URL('../../../sdks/python', import.meta.url))
const CACHE = fileURLToPath(new URL('../../../.cache', import.meta.url))
/** Installs much faster than pip. */
const UV = 'uv==0.13.9'
/** Builds the package where no index is reachable: in the test that installs it. */
const BUILD = 'setuptools==80.9.0'
const WHEELS = 'wheels'
const REQUIREMENTS = 'requirements.txt'
const INSTALL_MS = 600_000

const found = findPython()
const folder = found && path.join(CACHE, `python-${keyOf(found.version)}`)

/** The interpreter that has everything, once it is installed. */
export const interpreter = path.join(folder ?? '', 'bin', 'python')

export const wheels = path.join(folder ?? '', WHEELS)

/** Why tests in Python are skipped, or false. */
export const withoutPython = whyNot()

function whyNot(): string | false {
  if (folder && existsSync(folder)) return false
  if (!found) return 'the Python SDK is not tested: no python3 of version 3.10 or newer was found'
  return 'the Python SDK is not tested: its test packages could not be installed (python3 -m venv, PyPI)'
}

/** Called once, before the tests: a test's time limit does not cover an installation. */
export function installPython(): void {
  if (!found || !folder || existsSync(folder)) return
  console.log('Installing the packages of the Python tests…')
  // Renamed at the end, so that an interrupted installation is not taken for a whole one.
  const partial = `${folder}.${process.pid}`
  const run = (command: string, ...args: string[]) =>
    spawnSync(command, args, { cwd: PYTHON_SDK, stdio: 'ignore', timeout: INSTALL_MS }).status === 0
  const bin = path.join(partial, 'bin')
  const isInstalled =
    run(found.command, '-m', 'venv', partial) &&
    run(path.join(bin, 'python'), '-m', 'pip', 'install', '--quiet', '--retries', '1', UV) &&
    run(
      path.join(bin, 'python'),
      '-m',
      'pip',
      'download',
      '--quiet',
      '--no-deps',
      '-d',
      path.join(partial, WHEELS),
      BUILD,
    ) &&
    run(path.join(bin, 'uv'), 'pip', 'install', '--python', partial, '-r', REQUIREMENTS)
  if (isInstalled) renameSync(partial, folder)
  else rmSync(partial, { recursive: true, force: true })
}

function findPython(): { command: string; version: string } | undefined {
  for (const command of ['python3', 'python3.13', 'python3.12', 'python3.11', 'python3.10', 'python']) {
    const { status, stdout } = spawnSync(command, ['-c', 'import sys; print(*sys.version_info[:3], sep=".")'], {
      encoding: 'utf8',
    })
    const version = status === 0 ? stdout.trim() : ''
    const [major = 0, minor = 0] = version.split('.').map(Number)
    if (major === 3 && minor >= 10) return { command, version }
  }
  return undefined
}

/** A change of Python or of a pin makes a new environment. */
function keyOf(version: string): string {
  const pins = readFileSync(path.join(PYTHON_SDK, REQUIREMENTS), 'utf8')
  return createHash('sha256').update([version, UV, BUILD, pins].join('\n')).digest('hex').slice(0, 16)
}
