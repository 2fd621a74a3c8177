// Makes one package of the server, the console and the command, which runs without this repository:
//   npm run pack            writes tacho-<version>.tgz
//   npx ./tacho-0.1.0.tgz serve
// tsc compiles every source by itself, so files stand where they stand in the repository.
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const at = (...parts) => path.join(root, ...parts)
const PACKAGES = ['cli', 'client', 'contract', 'guards', 'mcp', 'policy', 'sdk', 'server']
/** Only the server reads files other than sources. */
const ASSETS = 'packages/server/src/**/*.{sql,css,svg,proto}'
const OWN = /(['"])@tacho\/([a-z]+)(\/[^'"]+)?\1/g

/** Fills `folder` with the package, ready for `npm pack`. */
function stage(folder) {
  compile(folder)
  for (const name of PACKAGES) copy(folder, `packages/${name}/package.json`)
  for (const file of globSync(ASSETS, { cwd: root })) copy(folder, file)
  for (const file of ['docs', 'packages/console/dist', 'packages/policy/README.md', 'README.md', 'LICENSE'])
    copy(folder, file)
  for (const file of globSync('packages/*/src/**/*.js', { cwd: folder })) link(folder, file)
  for (const file of ['packages/cli/bin/tacho', 'scripts/node']) {
    const whole = path.join(folder, file)
    mkdirSync(path.dirname(whole), { recursive: true })
    writeFileSync(whole, readFileSync(at(file), 'utf8').replaceAll('/main.ts"', '/main.js"'))
    chmodSync(whole, 0o755)
  }
  writeFileSync(path.join(folder, 'package.json'), `${JSON.stringify(manifest(), null, 2)}\n`)
}

function compile(folder) {
  const config = path.join(folder, 'tsconfig.json')
  const include = PACKAGES.map((name) => at('packages', name, 'src'))
  const emit = { noEmit: false, noCheck: true, rootDir: root, outDir: folder, rewriteRelativeImportExtensions: true }
  const compilerOptions = { ...emit, types: ['node'], typeRoots: [at('node_modules/@types')] }
  writeFileSync(config, JSON.stringify({ extends: at('tsconfig.base.json'), include, compilerOptions }))
  const args = [at('node_modules/.bin/tsc'), '-p', config]
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`tsc: ${stdout}`)
  rmSync(config)
}

/** Imports of the packages of this repository become relative: they are not installed as packages. */
function link(folder, file) {
  const whole = path.join(folder, file)
  const text = readFileSync(whole, 'utf8')
  const linked = text.replace(OWN, (_, quote, name, rest) => {
    const target = rest === undefined ? entry(name) : `src${rest.replace(/\.ts$/, '.js')}`
    const from = path.posix.relative(path.posix.dirname(file), `packages/${name}/${target}`)
    return `${quote}${from.startsWith('.') ? from : `./${from}`}${quote}`
  })
  if (linked !== text) writeFileSync(whole, linked)
}

function entry(name) {
  return readJson('packages', name, 'package.json').exports['.'].replace('./', '').replace(/\.ts$/, '.js')
}

function manifest() {
  const { name, version, description, license, type, engines, optionalDependencies } = readJson('package.json')
  const all = PACKAGES.flatMap((one) => Object.entries(readJson('packages', one, 'package.json').dependencies ?? {}))
  const dependencies = Object.fromEntries(all.filter(([one]) => !one.startsWith('@tacho/')))
  const bin = { tacho: 'packages/cli/bin/tacho' }
  return { name, version, description, license, type, engines, bin, dependencies, optionalDependencies }
}

function copy(folder, file) {
  cpSync(at(file), path.join(folder, file), { recursive: true })
}

function readJson(...parts) {
  return JSON.parse(readFileSync(at(...parts), 'utf8'))
}

/** Packs the package into `folder` and returns the path of the tarball. */
export function pack(folder) {
  execFileSync(process.execPath, [at('scripts/build-console.mjs')], { stdio: ['ignore', 'ignore', 'inherit'] })
  const staged = mkdtempSync(path.join(tmpdir(), 'tacho-pack-'))
  try {
    stage(staged)
    const env = { ...process.env, PATH: `${at('node_modules/.bin')}${path.delimiter}${process.env.PATH}` }
    const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]
    const packed = execFileSync('npm', args, { cwd: staged, env, encoding: 'utf8' })
    return path.join(folder, JSON.parse(packed)[0].filename)
  } finally {
    rmSync(staged, { recursive: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(pack(path.resolve(process.argv[2] ?? '.')))
}
