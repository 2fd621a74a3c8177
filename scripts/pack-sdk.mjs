// Makes the package that is published from packages/sdk, and prints the path of its tarball.
//   scripts/node scripts/pack-sdk.mjs <folder>
// Sources are compiled by tsc, file by file, as ES modules and as CommonJS. Only the policy engine is bundled: it comes from packages of this
// repository that are not published, and the SDK must have no dependencies.
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { root } from './build.mjs'
import { licencesOf } from './licences.mjs'

const sdk = path.join(root, 'packages/sdk')
/** The relative imports of compiled files and declarations. */
const IMPORT = /((?:from |import\(|import |require\()["']\.[^"'\n]+)\.[jt]s(["'])/g
const ESM = { format: 'esm', place: 'dist', code: '.js', types: '.d.ts', flags: [] }
const COMMON_JS = {
  format: 'cjs',
  place: 'dist/cjs',
  code: '.cjs',
  types: '.d.cts',
  flags: ['--module', 'commonjs', '--moduleResolution', 'bundler', '--verbatimModuleSyntax', 'false'],
}

/** Fills `folder` with the package, ready for `npm pack`. */
export async function buildSdk(folder) {
  const manifest = readJson(path.join(sdk, 'package.json'))
  const entries = Object.values(manifest.exports)
  await compile(folder, ESM, entries)
  const metafile = await compile(folder, COMMON_JS, entries)
  writeFileSync(path.join(folder, 'THIRD-PARTY-LICENSES'), licencesOf('dist/policies.js', metafile))
  writeFileSync(path.join(folder, 'package.json'), `${JSON.stringify(published(manifest), null, 2)}\n`)
  cpSync(path.join(sdk, 'README.md'), path.join(folder, 'README.md'))
  cpSync(path.join(root, 'LICENSE'), path.join(folder, 'LICENSE'))
}

/** Compiles the sources and the policy engine. Returns what the engine consists of. */
async function compile(folder, { format, place, code, types, flags }, entries) {
  const dist = path.join(folder, place)
  tsc('-p', path.join(sdk, 'tsconfig.build.json'), '--outDir', dist, ...flags)
  // tsc keeps `.ts` in declarations, which older compilers refuse.
  for (const file of globSync('**/*.{js,d.ts}', { cwd: dist, exclude: ['cjs'] })) {
    const text = readFileSync(path.join(dist, file), 'utf8')
    rmSync(path.join(dist, file))
    const named = file.replace(/\.js$/, code).replace(/\.d\.ts$/, types)
    writeFileSync(path.join(dist, named), text.replace(IMPORT, `$1${code}$2`))
  }
  keepPublicTypes(entries.map((source) => path.join(folder, compiled(source, place, types))))
  const { metafile } = await build({
    entryPoints: [path.join(sdk, 'src/policies.ts')],
    outfile: path.join(dist, `policies${code}`),
    bundle: true,
    format,
    platform: 'neutral',
    target: 'es2023',
    mainFields: ['module', 'main'],
    minifySyntax: true,
    metafile: true,
    allowOverwrite: true,
    logLevel: 'warning',
  })
  return metafile
}

/** Removes the declarations that no entry reaches: those of our internals. */
function keepPublicTypes(entries) {
  const open = new Set(entries)
  // A set grows while it is walked.
  for (const file of open) {
    const [, ending] = /(\.d\.c?ts)$/.exec(file)
    for (const [, name] of readFileSync(file, 'utf8').matchAll(/(?:from |import\()'(\.[^'\n]+)\.c?js'/g))
      open.add(path.join(path.dirname(file), `${name}${ending}`))
  }
  const [first] = entries
  const dist = path.dirname(first)
  for (const file of globSync(`**/*${/\.d\.c?ts$/.exec(first)[0]}`, { cwd: dist })) {
    if (!open.has(path.join(dist, file))) rmSync(path.join(dist, file))
  }
}

function tsc(...args) {
  const { status, stdout } = spawnSync(process.execPath, [path.join(root, 'node_modules/.bin/tsc'), ...args], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`tsc: ${stdout}`)
}

/** The manifest of the package. */
function published({ private: _, devDependencies: __, exports, imports, ...manifest }) {
  const entries = Object.entries(exports).map(([name, source]) => {
    const [esm, commonJs] = [ESM, COMMON_JS].map(({ place, code, types }) => ({
      types: compiled(source, `./${place}`, types),
      default: compiled(source, `./${place}`, code),
    }))
    // Where Node can require ESM, a program that uses both has one SDK. TypeScript and old tools know only `require`.
    return { name, commonJs, conditions: { 'module-sync': esm, require: commonJs, default: esm } }
  })
  const inside = ([name, conditions]) => [
    name,
    Object.fromEntries(
      Object.entries(conditions).map(([condition, source]) => {
        const [file, required] = [ESM, COMMON_JS].map(({ place, code }) => compiled(source, `./${place}`, code))
        return [condition, { require: required, default: file }]
      }),
    ),
  ]
  // For TypeScript's `moduleResolution: node10`, which does not read `exports`.
  const [main, ...others] = entries
  const oldTypes = others.map(({ name, commonJs }) => [name.slice(2), [commonJs.types]])
  return {
    ...manifest,
    main: main.commonJs.default,
    types: main.commonJs.types,
    typesVersions: { '*': Object.fromEntries(oldTypes) },
    exports: Object.fromEntries(entries.map(({ name, conditions }) => [name, conditions])),
    imports: Object.fromEntries(Object.entries(imports).map(inside)),
    files: ['dist', 'THIRD-PARTY-LICENSES'],
  }
}

/** What a source is compiled to. */
function compiled(source, place, ending) {
  return source.replace('./src', place).replace(/\.ts$/, ending)
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}

/** Packs the package into `folder` and returns the path of the tarball. */
export async function packSdk(folder) {
  const staged = path.join(folder, 'package')
  mkdirSync(staged, { recursive: true })
  await buildSdk(staged)
  // npm runs under the Node that runs this.
  const env = { ...process.env, PATH: `${path.join(root, 'node_modules/.bin')}${path.delimiter}${process.env.PATH}` }
  const packed = execFileSync('npm', ['pack', '--json', '--pack-destination', folder], {
    cwd: staged,
    env,
    encoding: 'utf8',
  })
  return path.join(folder, JSON.parse(packed)[0].filename)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder] = process.argv.slice(2)
  const usage =
    'Usage: scripts/node scripts/pack-sdk.mjs <folder>\nWrites the package of the TypeScript SDK there, and prints the path of its tarball.'
  if (folder === '--help' || folder === '-h') {
    console.log(usage)
    process.exit(0)
  }
  if (!folder || folder.startsWith('-')) {
    console.error(usage)
    process.exit(2)
  }
  console.log(await packSdk(path.resolve(folder)))
}
