// Makes one package of the server, the console and the command, which runs without this repository:
//   npm run pack               writes tacho-<version>.tgz
//   npx ./tacho-0.1.0.tgz serve
//   npm run pack -- --offline  writes tacho-<version>-<platform>.tgz, with its packages and Node, for closed networks
// Files are where they are in the repository, so the program finds them in the same way.
import { execFileSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { bringNode } from './bring-node.mjs'
import { EXTERNAL, versionOfBuild, writeProgram } from './build-program.mjs'
import { BEST, compressAssets, root } from './build.mjs'

const FILES = [
  'packages/cli/{bin,package.json}',
  'packages/console/dist',
  'packages/server/package.json',
  // The build contains the sources; the program reads these as files.
  'packages/server/src/**/*.{sql,css,svg}',
  'packages/policy/README.md',
  'docs',
  'examples/policies',
  'scripts/{node,bring-node.mjs}',
  'scripts/pinned-node/*.json',
  'README.md',
  'LICENSE',
]

const PLATFORM = `${process.platform}-${process.arch}`

/** Files of packages that are needed at run time. Files for building or counting are left out. */
const BUNDLED = {
  ...Object.fromEntries(EXTERNAL.map((name) => [name, ['**/*']])),
  'better-sqlite3': ['package.json', 'LICENSE', 'lib/**/*', `prebuilds/${process.platform}*-${process.arch}.node`],
}
const NODE = ['package.json', 'LICENSE', 'bin/node']

/** Adds the other packages and Node, so that npm can install it without a network. */
async function bundle(staged, { dependencies, ...rest }) {
  const node = path.join(await bringNode(), '../..')
  const all = { ...dependencies, [path.basename(node)]: readJson(path.join(node, 'package.json')).version }
  for (const name of Object.keys(all)) {
    const from = name in dependencies ? path.join(root, 'node_modules', name) : node
    const to = path.join(staged, 'node_modules', name)
    for (const file of globSync(BUNDLED[name] ?? NODE, { cwd: from, withFileTypes: true })) {
      if (!file.isFile()) continue
      const place = path.relative(from, path.join(file.parentPath, file.name))
      mkdirSync(path.dirname(path.join(to, place)), { recursive: true })
      cpSync(path.join(file.parentPath, file.name), path.join(to, place))
    }
    const described = readJson(path.join(from, 'package.json'))
    for (const member of ['dependencies', 'optionalDependencies', 'scripts', 'engines']) delete described[member]
    writeFileSync(path.join(to, 'package.json'), JSON.stringify(described))
  }
  const bundleDependencies = Object.keys(all)
  return { ...rest, os: [process.platform], cpu: [process.arch], dependencies: all, bundleDependencies }
}

/**
 * Files of swagger-ui-dist. They are copied, so that it need not be installed: one of its dependencies reports each
 * installation to a third party.
 */
const COPIES = ['swagger-ui.css', 'swagger-ui-bundle.js', 'swagger-ui-standalone-preset.js', 'LICENSE', 'NOTICE']
const [COPIED, COPIES_TO] = ['node_modules/swagger-ui-dist', 'packages/server/src/http/web/docs/swagger-ui']

function manifest() {
  const { name, description, license, repository, type, engines } = readJson('package.json')
  const files = globSync('packages/*/package.json', { cwd: root })
  const versions = new Map(files.flatMap((file) => Object.entries(readJson(file).dependencies ?? {})))
  const dependencies = Object.fromEntries(EXTERNAL.map((one) => [one, versions.get(one)]))
  const bin = { tacho: 'packages/cli/bin/tacho' }
  const version = versionOfBuild()
  return { name, version, description, license, repository, type, engines, bin, dependencies }
}

function readJson(file) {
  return JSON.parse(readFileSync(path.resolve(root, file), 'utf8'))
}

/** Packs the package into `folder` and resolves with the path of the tarball. */
export async function pack(folder, options = {}) {
  const staged = await stagePackage()
  try {
    return await packStaged(staged, folder, options)
  } finally {
    rmSync(staged, { recursive: true })
  }
}

/** Resolves with a temporary folder that contains the files of every package. */
export async function stagePackage() {
  execFileSync(process.execPath, [path.join(root, 'scripts/build-console.mjs')], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const staged = mkdtempSync(path.join(tmpdir(), 'tacho-pack-'))
  try {
    for (const file of globSync(FILES, { cwd: root })) {
      cpSync(path.join(root, file), path.join(staged, file), { recursive: true })
    }
    await compressAssets(path.join(staged, 'packages/console/dist'), BEST)
    for (const file of COPIES) cpSync(path.join(root, COPIED, file), path.join(staged, COPIES_TO, file))
    await writeProgram(path.join(staged, 'packages/cli/dist'))
    return staged
  } catch (error) {
    rmSync(staged, { recursive: true })
    throw error
  }
}

/** Packs a staged folder. With `offline`, it includes the other packages. */
export async function packStaged(staged, folder, { offline = false } = {}) {
  const described = offline ? await bundle(staged, manifest()) : manifest()
  writeFileSync(path.join(staged, 'package.json'), `${JSON.stringify(described, null, 2)}\n`)
  const env = { ...process.env, PATH: `${path.join(root, 'node_modules/.bin')}${path.delimiter}${process.env.PATH}` }
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]
  const packed = execFileSync('npm', args, { cwd: staged, env, encoding: 'utf8' })
  const file = path.join(folder, JSON.parse(packed)[0].filename)
  if (!offline) return file
  const named = file.replace(/\.tgz$/, `-${PLATFORM}.tgz`)
  renameSync(file, named)
  return named
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const args = process.argv.slice(2)
  const [folder = '.', ...more] = args.filter((argument) => argument !== '--offline')
  const usage = `Usage: npm run pack -- [--offline] [folder]
Writes the package of the server, the console and the command into the folder (default: this one), and prints its path.
--offline: with its packages and Node for ${PLATFORM}, to install without a network.`
  if (args.includes('--help') || args.includes('-h')) {
    console.log(usage)
  } else if (more.length > 0 || folder.startsWith('-')) {
    console.error(usage)
    process.exitCode = 2
  } else {
    console.log(await pack(path.resolve(folder), { offline: args.includes('--offline') }))
  }
}
