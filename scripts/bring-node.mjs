// Brings the pinned Node where the host's is too old, and prints the path of its program. It belongs to the repository or the
// installed package; if that folder cannot be written to, to the user's cache. Plain JavaScript for Node 20.
import { spawn, spawnSync } from 'node:child_process'
import {
  accessSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const described = fileURLToPath(new URL('pinned-node', import.meta.url))
const read = (file) => JSON.parse(readFileSync(path.join(described, file), 'utf8'))

/** The sources need `await using`, and better-sqlite3 Node-API 10: without that it crashes without a message. */
export const OLDEST_HOST = 24
export const isHostNewEnough = Number(process.versions.node.split('.')[0]) >= OLDEST_HOST

/** The package of Node for this platform, or undefined if there is none. */
export function pinnedPackage() {
  const { packages } = read('package-lock.json')
  const isHere = ({ os: system, cpu }) => system === process.platform && cpu === process.arch
  return Object.keys(packages[''].optionalDependencies).find((name) => isHere(packages[`node_modules/${name}`]))
}

/**
 * The path of the pinned Node's program. If it is not there, npm installs it, after `say`. Throws an error whose message says why not.
 * @param {(name: string) => void} [say]
 */
export async function bringNode(say) {
  const name = pinnedPackage()
  if (name === undefined) {
    throw new Error(
      `There is no pinned Node for ${process.platform}-${process.arch}. Put Node ${OLDEST_HOST} or newer on the PATH (this is ${process.version}).`,
    )
  }
  const folder = isWritable(described) ? described : cacheFolder(name)
  const modules = path.join(folder, 'node_modules')
  const program = path.join(modules, name, 'bin/node')
  if (existsSync(program)) return program
  say?.(name)
  mkdirSync(folder, { recursive: true })
  // Beside its place, so that it appears there whole: another process may bring it at the same time.
  const made = mkdtempSync(path.join(folder, 'bring-'))
  try {
    for (const file of ['package.json', 'package-lock.json']) cpSync(path.join(described, file), path.join(made, file))
    await npmCi(made, [])
    const brought = path.join(made, 'node_modules', name, 'bin/node')
    if (existsSync(brought) && spawnSync(brought, ['--version']).status !== 0) {
      throw new Error(
        `${name} does not run on this system: it needs glibc and libatomic (libatomic1 of Debian and Ubuntu). Install that, or put Node ${OLDEST_HOST} or newer on the PATH.`,
      )
    }
    // Headers for programs in C: a third of the package.
    rmSync(path.join(made, 'node_modules', name, 'include'), { recursive: true, force: true })
    try {
      renameSync(path.join(made, 'node_modules'), modules)
    } catch (error) {
      if (!existsSync(program)) throw error
    }
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
  if (!existsSync(program))
    throw new Error(`npm did not install ${name}. Put Node ${OLDEST_HOST} or newer on the PATH.`)
  return program
}

/** Installs what the folder's package-lock.json names. Throws an error whose message says why it could not. */
export async function npmCi(folder, args) {
  const all = [
    'ci',
    ...args,
    '--include=optional',
    '--loglevel=error',
    '--no-audit',
    '--no-fund',
    '--fetch-retry-mintimeout=1000',
  ]
  const npm = spawn('npm', all, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  npm.stderr.setEncoding('utf8').on('data', (text) => (errors += text))
  // npm must end with this process.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => npm.kill(signal))
  const code = await new Promise((done) => npm.on('error', () => done('missing')).on('close', done))
  if (code === 0) return
  if (code === 'missing') throw new Error('npm is not on the PATH, so the dependencies cannot be installed.')
  if (code === null) throw new Error('The installation was interrupted.')
  if (/\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED)\b/.test(errors)) {
    throw new Error('The npm registry cannot be reached, so the dependencies cannot be installed.')
  }
  throw new Error(`${errors}The dependencies could not be installed; npm printed the reason above.`)
}

function cacheFolder(name) {
  const cache = process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache')
  return path.join(cache, 'tacho', `${name}-${read('package.json').optionalDependencies[name]}`)
}

function isWritable(folder) {
  try {
    accessSync(folder, constants.W_OK)
    return true
  } catch {
    return false
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    // On standard error: the answer of a command is on standard output.
    const say = (name) =>
      console.error(`tacho: ${process.version} is too old, so npm brings a newer Node once (${name}, 60 MB to fetch)…`)
    console.log(isHostNewEnough ? process.execPath : await bringNode(say))
  } catch (error) {
    console.error(`tacho: ${error.message}`)
    process.exitCode = 1
  }
}
