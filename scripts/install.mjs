// Installs the packages of package-lock.json, unless they are installed already: those that the server, the console and the
// command need, or with --all also those of the tests and checks, which are most. Plain JavaScript for Node 20 or newer, because
// it also installs the Node that runs everything else.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const at = (...parts) => path.join(root, ...parts)
const pinnedNode = at('node_modules/.bin/node')
const stampFile = at('node_modules/.tacho-installed')
const lockFile = at('.cache/install.lock')

const wantedText = readFileSync(at('package-lock.json'), 'utf8')
// Includes the platform: a folder shared with a container may have the binaries of the other system.
const stamp = `${createHash('sha256').update(wantedText).digest('hex')} ${process.platform}-${process.arch}\n`
const wantsAll = process.argv.includes('--all')
const COMPLETE = 'all '

if (!isInstalled()) {
  checkPlatform()
  await takeLock()
  process.on('exit', () => rmSync(lockFile, { force: true }))
  if (!isInstalled()) await install()
}

function isInstalled() {
  try {
    const installed = readFileSync(stampFile, 'utf8')
    return installed === COMPLETE + stamp || (installed === stamp && !wantsAll)
  } catch {
    return false
  }
}

async function install() {
  const byHand = madeByHand()
  if (!byHand) await withProgress(npmCi)
  linkPinnedNode()
  if (existsSync(pinnedNode) && spawnSync(pinnedNode, ['--version']).status !== 0) {
    stop('the pinned Node does not run on this system (it needs glibc).')
  }
  if (!existsSync(pinnedNode) && !hostNodeIsNewEnough()) stop('npm did not install the pinned Node; try `npm ci`.')
  writeFileSync(stampFile, (byHand || wantsAll ? COMPLETE : '') + stamp)
}

/** npm 10 removes the link again, with the packages for other platforms. */
function linkPinnedNode() {
  const program = at(pinnedPackage() ?? '', 'bin/node')
  if (existsSync(pinnedNode) || !existsSync(program)) return
  rmSync(pinnedNode, { force: true })
  symlinkSync(path.relative(path.dirname(pinnedNode), program), pinnedNode)
}

/** After a manual `npm install`, npm's own record shows what is installed, so nothing needs to be installed again. */
function madeByHand() {
  try {
    const wanted = JSON.parse(wantedText).packages
    const found = JSON.parse(readFileSync(at('node_modules/.package-lock.json'), 'utf8')).packages
    return Object.entries(wanted).every(([where, { integrity, optional }]) => {
      if (!where.includes('node_modules/')) return true
      const there = found[where]
      return there ? there.integrity === integrity : optional && where !== pinnedPackage()
    })
  } catch {
    return false
  }
}

/** On a terminal, counts packages and seconds: the first installation takes up to a minute. */
async function withProgress(act) {
  const { packages } = JSON.parse(wantedText)
  const places = Object.keys(packages).filter((where) => where.includes('node_modules/') && isWanted(packages[where]))
  const text = `Installing ${places.length} packages${wantsAll ? ', with those of the tests' : ''}`
  if (!process.stdout.isTTY) console.log(`${text}…`)
  const begun = Date.now()
  const show = () => {
    const done = places.filter((where) => existsSync(at(where, 'package.json'))).length
    const seconds = Math.round((Date.now() - begun) / 1000)
    process.stdout.write(`\r${text}: ${done} in ${seconds} s`)
  }
  const clock = process.stdout.isTTY ? setInterval(show, 1_000) : undefined
  try {
    await act()
    if (clock) show()
  } finally {
    clearInterval(clock)
    if (clock) process.stdout.write('\n')
  }
}

function isWanted({ dev, link, os, cpu, libc }) {
  const fits = (list, own) => list === undefined || list.includes(own)
  const isHere = fits(os, process.platform) && fits(cpu, process.arch) && fits(libc, 'glibc')
  return isHere && !link && (wantsAll || !dev)
}

async function npmCi() {
  // Whatever NODE_ENV says. Node itself is an optional dependency.
  const args = [
    'ci',
    wantsAll ? '--include=dev' : '--omit=dev',
    '--include=optional',
    '--loglevel=error',
    '--fetch-retry-mintimeout=1000',
  ]
  const npm = spawn('npm', args, { cwd: root, stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  npm.stderr.setEncoding('utf8').on('data', (text) => (errors += text))
  // npm must end with this process.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => npm.kill(signal))
  const code = await new Promise((done) => npm.on('error', () => done('missing')).on('close', done))
  if (code === 0) return
  if (code === 'missing') stop('npm is not on the PATH, so the dependencies cannot be installed.')
  if (code === null) stop('the installation was interrupted.')
  if (/\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED)\b/.test(errors)) {
    stop('the npm registry cannot be reached, so the dependencies cannot be installed.')
  }
  process.stderr.write(errors)
  stop('the dependencies could not be installed; npm printed the reason above.')
}

function checkPlatform() {
  const [major] = process.versions.node.split('.')
  if (Number(major) < 20) stop(`Node 20 or newer is needed to install; this is ${process.version}.`)
  if (!pinnedPackage() && !hostNodeIsNewEnough()) {
    stop(
      `no pinned Node exists for ${process.platform}-${process.arch}; put Node 26 on the PATH (this is ${process.version}).`,
    )
  }
}

function pinnedPackage() {
  const { packages } = JSON.parse(wantedText)
  return Object.keys(packages[''].optionalDependencies)
    .map((name) => `node_modules/${name}`)
    .find((where) => packages[where].os === process.platform && packages[where].cpu === process.arch)
}

/** better-sqlite3 needs Node-API 10. On older versions it crashes without a message. */
function hostNodeIsNewEnough() {
  return Number(process.versions.napi) >= 10
}

/** A second start waits for the first. The lock file names its process, so the lock of a dead process is replaced. */
async function takeLock() {
  const mine = `${lockFile}.${process.pid}`
  try {
    mkdirSync(at('.cache'), { recursive: true })
    writeFileSync(mine, String(process.pid))
  } catch (error) {
    stop(`the dependencies are missing and ${root} cannot be written to (${error.code}).`)
  }
  try {
    while (!tryLink(mine)) {
      if (!isAlive(lockOwner())) rmSync(lockFile, { force: true })
      else await sleep(200)
    }
  } finally {
    rmSync(mine, { force: true })
  }
}

function tryLink(mine) {
  try {
    linkSync(mine, lockFile) // unlike a plain write, the file appears with its content or not at all
    return true
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
    return false
  }
}

function lockOwner() {
  try {
    return Number(readFileSync(lockFile, 'utf8'))
  } catch {
    return process.pid // deleted in the meantime: check again
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

function stop(sentence) {
  console.error(`tacho: ${sentence}`)
  process.exit(1)
}
