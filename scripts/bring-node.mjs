// Downloads the pinned Node if the host's is too old, and prints the path of its program. Node is stored in the
// repository or the installed package, or in the user's cache if that folder is not writable.
// Plain JavaScript for Node 20.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'

const described = fileURLToPath(new URL('pinned-node', import.meta.url))
const read = (file) => JSON.parse(readFileSync(path.join(described, file), 'utf8'))

/**
 * The oldest usable version of Node. The sources need `await using`. better-sqlite3 needs Node-API 10, and crashes
 * without a message if it is missing.
 */
export const OLDEST_HOST = 24
export const isHostNewEnough = Number(process.versions.node.split('.')[0]) >= OLDEST_HOST

/** The package of Node for this platform, or undefined if there is none. */
export function pinnedPackage() {
  const { packages } = read('package-lock.json')
  const isHere = ({ os: system, cpu }) => system === process.platform && cpu === process.arch
  return Object.keys(packages[''].optionalDependencies).find((name) => isHere(packages[`node_modules/${name}`]))
}

/**
 * The path of the pinned Node's program. If it is missing, calls `say` and lets npm download it. Throws an error that
 * says why this is impossible.
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
  // Download to a folder beside the final place, and rename it at the end: another process may do the same at this
  // time.
  const made = mkdtempSync(path.join(folder, 'bring-'))
  try {
    const brought = path.join(made, 'node_modules', name, 'bin/node')
    await unpackNode(name, made)
    if (spawnSync(brought, ['--version']).status !== 0) {
      throw new Error(
        `${name} does not run on this system: it needs glibc and libatomic (libatomic1 of Debian and Ubuntu). Install that, or put Node ${OLDEST_HOST} or newer on the PATH.`,
      )
    }
    try {
      renameSync(path.join(made, 'node_modules'), modules)
    } catch (error) {
      if (!existsSync(program)) throw error
    }
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
  return program
}

/** The files that are needed. The other 2,800 files are C headers, and npm takes twice as long to write them. */
const NEEDED = ['package.json', 'LICENSE', 'bin/node']

/** Downloads the package of Node to `made`, checks it, and writes the needed files to `made/node_modules`. */
async function unpackNode(name, made) {
  const { version, integrity } = read('package-lock.json').packages[`node_modules/${name}`]
  await npm(made, ['pack', `${name}@${version}`, '--pack-destination', made])
  const packed = readFileSync(path.join(made, `${name}-${version}.tgz`))
  if (`sha512-${createHash('sha512').update(packed).digest('base64')}` !== integrity) {
    throw new Error(`npm fetched another ${name}@${version} than the one that package-lock.json names.`)
  }
  const tar = await promisify(gunzip)(packed)
  const field = (from, length) => tar.toString('latin1', from, from + length).split('\0', 1)[0]
  // Each file in a tar is a header of 512 bytes and its content, padded to a multiple of 512.
  for (let at = 0; at < tar.length;) {
    const [place, size] = [field(at, 100).replace(/^package\//, ''), parseInt(field(at + 124, 12), 8) || 0]
    if (NEEDED.includes(place)) {
      const file = path.join(made, 'node_modules', name, place)
      mkdirSync(path.dirname(file), { recursive: true })
      writeFileSync(file, tar.subarray(at + 512, at + 512 + size), { mode: 0o755 })
    }
    at += 512 + Math.ceil(size / 512) * 512
  }
}

/** Installs the packages in the folder's package-lock.json. Throws an error that says why it failed. */
export function npmCi(folder, args) {
  return npm(folder, ['ci', ...args, '--include=optional'])
}

async function npm(folder, args) {
  const all = [...args, '--loglevel=error', '--no-audit', '--no-fund', '--fetch-retry-mintimeout=1000']
  const child = spawn('npm', all, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text) => (errors += text))
  // End npm together with this process.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => child.kill(signal))
  const code = await new Promise((done) => child.on('error', () => done('missing')).on('close', done))
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
    // Report on stderr, because stdout belongs to the command.
    const say = (name) =>
      console.error(`tacho: ${process.version} is too old, so npm brings a newer Node once (${name}, 60 MB to fetch)…`)
    console.log(isHostNewEnough ? process.execPath : await bringNode(say))
  } catch (error) {
    console.error(`tacho: ${error.message}`)
    process.exitCode = 1
  }
}
