// Installs the packages in package-lock.json, unless they are already installed: those that the server, the console and
// the command need; with --all also those of tests and checks, which are most. Plain JavaScript for Node 20 or newer,
// because it also installs the Node that runs everything else.
import { createHash } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { bringNode, isHostNewEnough, npmCi } from './bring-node.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const at = (...parts) => path.join(root, ...parts)
/** A link to the Node that runs everything: the host's, or the pinned one if the host's is too old. */
const linkedNode = at('node_modules/.bin/node')
const stampFile = at('node_modules/.tacho-installed')
const lockFile = at('.cache/install.lock')

const wantedText = readFileSync(at('package-lock.json'), 'utf8')
const nodeText = readFileSync(at('scripts/pinned-node/package-lock.json'), 'utf8')
// The stamp includes the platform, because a folder that is shared with a container may have binaries of another
// system.
const stamp = `${createHash('sha256')
  .update(wantedText + nodeText)
  .digest('hex')} ${process.platform}-${process.arch}\n`
const wantsAll = process.argv.includes('--all')
const COMPLETE = 'all '

if (!isInstalled()) {
  try {
    checkNode()
    await takeLock()
    process.on('exit', () => rmSync(lockFile, { force: true }))
    if (!isInstalled()) await install()
  } catch (error) {
    stop(error.message)
  }
}

function isInstalled() {
  try {
    const installed = readFileSync(stampFile, 'utf8')
    // The link is broken if the host's Node was removed.
    if (!existsSync(linkedNode)) return false
    return installed === COMPLETE + stamp || (installed === stamp && !wantsAll)
  } catch {
    return false
  }
}

async function install() {
  const byHand = madeByHand()
  // Download Node and the packages at the same time. Link Node only when both are there, because `npm ci` removes
  // node_modules first.
  const [program] = await Promise.all([
    isHostNewEnough ? process.execPath : bringNode(),
    byHand || withProgress(npmCiHere),
  ])
  if (!byHand && !wantsAll) dropSourceMaps()
  rmSync(linkedNode, { force: true })
  symlinkSync(program === process.execPath ? program : path.relative(path.dirname(linkedNode), program), linkedNode)
  writeFileSync(stampFile, (byHand || wantsAll ? COMPLETE : '') + stamp)
}

/**
 * Removes source maps: a seventh of the installation, and nothing reads them. `npm test` installs all packages again,
 * with source maps.
 */
function dropSourceMaps() {
  for (const { name, parentPath, path: folder } of readdirSync(at('node_modules'), {
    recursive: true,
    withFileTypes: true,
  })) {
    if (/\.(?:[cm]?[jt]s|css)\.map$/.test(name)) rmSync(path.join(parentPath ?? folder, name))
  }
}

/**
 * Whether somebody ran `npm install`. npm's own record then shows what is installed, so nothing needs to be installed
 * again.
 */
function madeByHand() {
  try {
    const wanted = JSON.parse(wantedText).packages
    const found = JSON.parse(readFileSync(at('node_modules/.package-lock.json'), 'utf8')).packages
    return Object.entries(wanted).every(([where, { integrity, optional }]) => {
      if (!where.includes('node_modules/')) return true
      const there = found[where]
      return there ? there.integrity === integrity : optional
    })
  } catch {
    return false
  }
}

/** Shows counts of packages and seconds on a terminal, because the first installation takes up to a minute. */
async function withProgress(act) {
  const { packages } = JSON.parse(wantedText)
  const places = Object.keys(packages).filter((where) => where.includes('node_modules/') && isWanted(packages[where]))
  const what = wantsAll ? 'with those of the tests' : 'for the server, the console and the command'
  const text = `Installing ${places.length} packages ${what}${isHostNewEnough ? '' : `, and a Node newer than ${process.version}`}`
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

/** Runs `npm ci` regardless of NODE_ENV. */
function npmCiHere() {
  return npmCi(root, [wantsAll ? '--include=dev' : '--omit=dev'])
}

function checkNode() {
  const [major] = process.versions.node.split('.')
  if (Number(major) < 20) throw new Error(`Node 20 or newer is needed to install; this is ${process.version}.`)
}

/**
 * Makes a second start wait for the first. The lock file contains the process id, so that the lock of a dead process can be
 * replaced.
 */
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
