/**
 * The Python environments of the tests: virtual environments below .cache/ with pinned packages. TACHO_TEST_PYTHON selects the
 * interpreter. TACHO_TEST_FRAMEWORKS=1 adds two environments: one for CrewAI, which needs older packages, and one for programs
 * with web frameworks, queues and notebooks.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const PYTHON_SDK = fileURLToPath(new URL('../../../sdks/python', import.meta.url))
const CACHE = fileURLToPath(new URL('../../../.cache', import.meta.url))
/** Installs much faster than pip. */
const UV = 'uv==0.13.9'
/** Builds the package without an index, in the test that installs the package. */
const BUILD = 'setuptools==80.9.0'
const WHEELS = 'wheels'
const INSTALL_MS = 600_000

/** Variable with the folder of compiled Python, so that programs do not compile the SDK and the frameworks again. */
export const KEPT_BYTECODE = 'PYTHONPYCACHEPREFIX'
process.env[KEPT_BYTECODE] ??= path.join(CACHE, 'pycache')
// Container images for Python set this. Then no compiled code would be stored, and programs would start four times as slowly.
delete process.env['PYTHONDONTWRITEBYTECODE']

const found = findPython()
/** The machine's interpreter, for programs that need no packages. */
export const pythonCommand = found?.command
const main = environment(path.join(PYTHON_SDK, 'requirements.txt'))
const crewai = environment(path.join(PYTHON_SDK, 'requirements-crewai.txt'))
const programs = environment(path.join(PYTHON_SDK, 'requirements-programs.txt'))
const schemathesisEnvironment = environment(
  fileURLToPath(new URL('../../server/test/http/openapi/requirements.txt', import.meta.url)),
)

/** The interpreters of the environments. `installPython` installs their packages. */
export const interpreter = path.join(main.folder, 'bin', 'python')
export const crewaiInterpreter = path.join(crewai.folder, 'bin', 'python')
export const programsInterpreter = path.join(programs.folder, 'bin', 'python')
export const schemathesisInterpreter = path.join(schemathesisEnvironment.folder, 'bin', 'python')

export const wheels = path.join(main.folder, WHEELS)

/** Why Python tests are skipped; false: they run. */
export const withoutPython = whyNot(main.folder)
export const withoutCrewai =
  process.env['TACHO_TEST_FRAMEWORKS'] === undefined
    ? 'needs 800 MB of packages: set TACHO_TEST_FRAMEWORKS=1'
    : whyNot(crewai.folder)
export const withoutPrograms =
  process.env['TACHO_TEST_FRAMEWORKS'] === undefined
    ? 'needs 350 MB of packages: set TACHO_TEST_FRAMEWORKS=1'
    : whyNot(programs.folder)

export const withoutSchemathesis =
  found && !isAtLeast(3, 11) ? 'Schemathesis needs Python 3.11' : whyNot(schemathesisEnvironment.folder)

/** Environment of a benchmark, which installs it when it runs. @param isWhole whether the requirements list every package */
export function pythonEnvironment(requirements: string, isWhole = false) {
  const own = { ...environment(requirements), isWhole }
  return {
    interpreter: path.join(own.folder, 'bin', 'python'),
    whyNot: () => whyNot(own.folder),
    install: () => install(own),
  }
}

function whyNot(folder: string): string | false {
  if (!found) return 'not tested: no python3 of version 3.10 or newer was found'
  if (existsSync(folder)) return false
  return 'not tested: its Python packages could not be installed (python3 -m venv, PyPI)'
}

/** Called once, before the tests: a test's time limit does not cover an installation. */
export function installPython(): void {
  install(main)
  if (isAtLeast(3, 11)) install(schemathesisEnvironment)
  if (process.env['TACHO_TEST_FRAMEWORKS'] === undefined) return
  install(crewai)
  install(programs)
}

function install({ requirements, folder, isWhole = false }: Environment): void {
  if (!found || existsSync(folder)) return
  const isMain = folder === main.folder
  if (!isMain) install(main)
  console.log('Installing the packages of the Python tests…')
  // Rename at the end, so that an interrupted installation does not look complete.
  const partial = `${folder}.${process.pid}`
  const run = (command: string, ...args: string[]) =>
    spawnSync(command, args, { cwd: PYTHON_SDK, stdio: 'ignore', timeout: INSTALL_MS }).status === 0
  const python = path.join(partial, 'bin', 'python')
  const uv = path.join(isMain ? partial : main.folder, 'bin', 'uv')
  // The other environments have neither pip nor uv, because installing these takes ten times as long as all other steps.
  const isMade = isMain
    ? run(found.command, '-m', 'venv', partial) &&
      run(python, '-m', 'pip', 'install', '--quiet', '--retries', '1', UV) &&
      run(python, '-m', 'pip', 'download', '--quiet', '--no-deps', '-d', path.join(partial, WHEELS), BUILD)
    : run(found.command, '-m', 'venv', '--without-pip', partial)
  const only = isWhole ? ['--no-deps'] : []
  const isInstalled = isMade && run(uv, 'pip', 'install', '--python', partial, ...only, '-r', requirements)
  if (isInstalled) renameSync(partial, folder)
  else rmSync(partial, { recursive: true, force: true })
}

function isAtLeast(major: number, minor: number): boolean {
  const [ofMajor = 0, ofMinor = 0] = (found?.version ?? '').split('.').map(Number)
  return ofMajor > major || (ofMajor === major && ofMinor >= minor)
}

function findPython(): { command: string; version: string } | undefined {
  const chosen = process.env['TACHO_TEST_PYTHON']
  for (const command of chosen
    ? [chosen]
    : ['python3', 'python3.13', 'python3.12', 'python3.11', 'python3.10', 'python']) {
    const { status, stdout } = spawnSync(command, ['-c', 'import sys; print(*sys.version_info[:3], sep=".")'], {
      encoding: 'utf8',
    })
    const version = status === 0 ? stdout.trim() : ''
    const [major = 0, minor = 0] = version.split('.').map(Number)
    if (major === 3 && minor >= 10) return { command, version }
  }
  return undefined
}

interface Environment {
  readonly requirements: string
  readonly folder: string
  readonly isWhole?: boolean
}

/** The environment for these requirements. A change of Python or of a pinned version makes a new one. */
function environment(requirements: string): Environment {
  const pins = readFileSync(requirements, 'utf8')
  const key = createHash('sha256').update([found?.version, UV, BUILD, pins].join('\n'))
  return { requirements, folder: path.join(CACHE, `python-${key.digest('hex').slice(0, 16)}`) }
}
