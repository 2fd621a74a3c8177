// Makes the package that is published from packages/sdk, and prints the path of its tarball.
//   scripts/node scripts/pack-sdk.mjs <folder>
// The sources are bundled into parts that entries share. The policy engine is bundled too: its packages are not
// published, and the SDK must have no dependencies. The CommonJS modules have the same text apart from imports and
// exports, and the same file names. npm sorts files by name, so gzip stores each pair almost once, but only for files
// below 32 kB, which is its window.
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { Script } from 'node:vm'
import { build } from 'esbuild'
import { parseAst } from 'rolldown/parseAst'
import { minifySync } from 'rolldown/utils'
import { versionOfBuild } from './build-program.mjs'
import { root } from './build.mjs'
import { licencesOf } from './licences.mjs'

const sdk = path.join(root, 'packages/sdk')
const ESM = 'dist/esm'
const COMMON_JS = 'dist/cjs'
const CUT = 'cut-'
// Maximum line length: each line costs about a byte of the package.
const LINE_CHARS = 4_000
/** Splits the policy engine and the guards into files below 32 kB. */
const CUTS = [
  'node_modules/@bufbuild/re2/dist/esm/Parser.js',
  'node_modules/@bufbuild/re2/dist/esm/UnicodeTables.js',
  'node_modules/@bufbuild/re2/dist/esm/index.js',
  'packages/policy/src/compile.ts',
  'packages/policy/src/evaluation/condition.ts',
  'packages/sdk/src/guard/guard.ts',
]

/**
 * The entry of the pattern library without its matcher: 4 kB that nothing uses. The policy engine gets the compiled pattern
 * from the library and runs it itself (packages/policy/src/pattern/automaton.ts).
 */
const COMPILING = `
import { Compiler } from './Compiler.js'
import { Parser } from './Parser.js'
import { PERL } from './RE2Flags.js'
import { simplify } from './Simplify.js'
export { RE2JSSyntaxException } from './exceptions.js'
const re2 = (source) => ({ prog: Compiler.compileRegexp(simplify(Parser.parse(source, PERL))) })
export const RE2JS = { compile: (source) => ({ re2: () => re2(source) }) }`

const withoutMatchers = {
  name: 'without matchers',
  setup(bundle) {
    bundle.onLoad({ filter: /[\\/]@bufbuild[\\/]re2[\\/].*[\\/]index\.js$/ }, ({ path: file }) => ({
      contents: COMPILING,
      resolveDir: path.dirname(file),
    }))
  },
}

/** Fills `folder` with the package, ready for `npm pack`. */
export async function buildSdk(folder) {
  const manifest = readJson(path.join(sdk, 'package.json'))
  const entries = Object.values(manifest.exports)
  const metafile = await bundle(folder, [
    ...new Set([...entries, ...Object.values(manifest.imports).flatMap((choices) => Object.values(choices))]),
  ])
  declare(folder, entries)
  // Node reads the package.json nearest to a module.
  const scope = { type: 'commonjs', imports: inside(manifest.imports, '.') }
  writeFileSync(path.join(folder, COMMON_JS, 'package.json'), JSON.stringify(scope))
  writeFileSync(path.join(folder, 'THIRD-PARTY-LICENSES'), licencesOf('dist', metafile))
  writeFileSync(path.join(folder, 'package.json'), `${JSON.stringify(published(manifest))}\n`)
  cpSync(path.join(sdk, 'README.md'), path.join(folder, 'README.md'))
  cpSync(path.join(root, 'LICENSE'), path.join(folder, 'LICENSE'))
}

/** Writes the code. Returns the sources in it. */
async function bundle(folder, entries) {
  const { metafile, outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [
      ...entries.map((source) => ({ in: path.join(sdk, source), out: compiled(source, '.', '') })),
      ...CUTS.map((file, number) => ({ in: file, out: `${CUT}${number}` })),
    ],
    outdir: path.join(folder, ESM),
    chunkNames: 'parts/[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'neutral',
    target: 'es2023',
    mainFields: ['module', 'main'],
    external: ['#process', '#whole', 'node:*'],
    plugins: [withoutMatchers],
    minify: true,
    legalComments: 'none',
    metafile: true,
    write: false,
    logLevel: 'warning',
  })
  const short = shortNames(metafile)
  const files = outputFiles.map(({ path: long, text }) => ({ whole: short(long), code: minified(short(text)) }))
  const again = new Map(files.flatMap(({ whole, code }) => onlyExporting(path.basename(whole), code)))
  for (const { whole, code: full } of files) {
    const file = path.relative(path.join(folder, ESM), whole)
    // Leave out a file that only exports another part again.
    if (file.startsWith(CUT) || again.has(path.basename(whole))) continue
    const code = full.replaceAll(/\bimport\("([^"]*\/)(\d+\.js)"\)/g, (one, place, name) => {
      const { from, members } = again.get(name) ?? {}
      return from === undefined ? one : `import("${place}${from}").then(e=>({${members}}))`
    })
    write(whole, code)
    write(path.join(folder, COMMON_JS, file), commonJs(code))
  }
  return metafile
}

/**
 * Returns the other part if this one only exports it again. The bundler makes such a part for code that is loaded both on
 * demand and at once. Each file costs about a hundred bytes, so importers use the other part directly.
 */
function onlyExporting(name, code) {
  const [, names, from] = /^export\{([^}]*)\}from"\.\/(\d+\.js)";(?:import"[^"]*";)*\s*$/.exec(code) ?? []
  if (from === undefined || !/^\d+\.js$/.test(name)) return []
  const members = names.split(',').map((one) => /^(\w+)(?: as (\w+))?$/.exec(one))
  return [[name, { from, members: members.map(([, inner, outer = inner]) => `${outer}:e.${inner}`).join() }]]
}

/**
 * Numbers the parts by their content. Hashes cannot be compressed, and they changed the order of the parts with each
 * change of the sources, which made the package up to 500 bytes larger or smaller. Two digits, because npm sorts by
 * name.
 */
function shortNames({ outputs }) {
  const parts = Object.entries(outputs).flatMap(([file, { inputs }]) => {
    const [hash] = /(?<=\/parts\/)\w+(?=\.js$)/.exec(file) ?? []
    return hash === undefined ? [] : [{ hash, first: Object.keys(inputs).sort().join() }]
  })
  const numbers = new Map(
    parts.toSorted((a, b) => (a.first < b.first ? -1 : 1)).map(({ hash }, at) => [hash, `${at}`.padStart(2, '0')]),
  )
  return (text) => text.replaceAll(/(?<=[/"'])\w{8}(?=\.js)/g, (hash) => numbers.get(hash) ?? hash)
}

/** Uses the minifier of Vite: esbuild's output is 8 kB larger. */
function minified(text) {
  const { code, errors } = minifySync('part.js', text, { compress: { target: 'es2023' }, mangle: true, module: true })
  if (errors.length > 0) throw new Error(errors[0].message)
  // Remove imports without names. The bundler keeps them for their order, but no part has an effect when loaded:
  // `sideEffects` is false.
  const used = code.replaceAll(/\bimport"[./]+(?:parts\/)?\d+\.js";/g, '')
  // Use quotes, because bundlers search for quoted texts.
  return inLines(used.replaceAll(/\bimport\(`([^`$]+)`\)/g, 'import("$1")'))
}

/** Splits the code into lines between statements: Node prints the whole line of an uncaught error. */
function inLines(code) {
  const starts = []
  const walk = (node) => {
    if (node === null || typeof node !== 'object') return
    if (Array.isArray(node.body)) starts.push(...node.body.map(({ start }) => start))
    Object.values(node).forEach(walk)
  }
  walk(parseAst(code))
  let [lines, from] = ['', 0]
  for (const start of starts.toSorted((a, b) => a - b)) {
    if (start - from < LINE_CHARS) continue
    lines += `${code.slice(from, start)}\n`
    from = start
  }
  return lines + code.slice(from)
}

/** Imports and exports, as the minifier writes them. */
const IMPORTS = /\bimport\s*([^"'`;()]*?)(?:\s*from\s*)?("(?:\.\.?\/|#|node:)[^"]+");/g
const EXPORTS = /\bexport\s*\{([^}]*)\}(?:\s*from\s*("[^"]+"))?(?:;|\s*$)/g

/**
 * Converts a module to CommonJS. Exports have their values at the end of the module, because no source has `export
 * let`.
 */
function commonJs(text) {
  const code = text
    .replaceAll(IMPORTS, (_, names, from) => {
      const named = /\{(.*)\}/s.exec(names)?.[1].split(',') ?? []
      const whole = [
        names.replace(/,?\{.*\}/s, '').replace(/^\*\s*as\s+/, ''),
        ...named.map((one) => /^default as (.*)/.exec(one)?.[1]),
      ]
      const others = named.filter((one) => !one.startsWith('default as ')).map((one) => one.replace(' as ', ':'))
      const into = [...whole.filter((one) => one?.trim()), ...(others.length > 0 ? [`{${others.join(',')}}`] : [])]
      return into.length > 0 ? `const ${into.map((one) => `${one}=require(${from})`).join(',')};` : `require(${from});`
    })
    .replaceAll(/\bimport\(("[^"]+")\)/g, 'Promise.resolve().then(()=>require($1))')
    .replaceAll(EXPORTS, (_, names, from) => {
      const pairs = names.split(',').map((one) => one.split(' as '))
      const members = pairs.map(([own, name = own]) => `${name}:${from === undefined ? own : `e.${own}`}`)
      const assigned = `Object.assign(exports,{${members.join(',')}})`
      return from === undefined ? `${assigned};` : `(e=>${assigned})(require(${from}));`
    })
  // Throws if the code is still a module.
  void new Script(`(()=>{${code}\n})`)
  return `"use strict";${code}`
}

/** Writes the declarations that an entry reaches. The others are internal. */
function declare(folder, entries) {
  const whole = path.join(folder, 'declarations')
  // A second checker would compute the same types again.
  const options = ['--emitDeclarationOnly', '--checkers', '1', '--outDir', whole]
  tsc('-p', path.join(sdk, 'tsconfig.build.json'), ...options)
  const open = new Set(entries.map((source) => compiled(source, '.', '.d.ts')))
  // A set may grow during the loop. tsc keeps `.ts` in imports, which older compilers reject.
  for (const file of open) {
    const text = readFileSync(path.join(whole, file), 'utf8').replaceAll(IMPORT, '$1.js$2')
    for (const [, name] of text.matchAll(/(?:from |import\()'(\.[^'\n]+)\.js'/g)) {
      open.add(path.join(path.dirname(file), `${name}.d.ts`))
    }
    // Remove comments about whole files, line breaks in comments (editors wrap them), and half of tsc's indentation.
    const small = text
      .replace(ABOUT_FILE, '')
      .replaceAll(BROKEN_SENTENCE, ' ')
      .replaceAll(/^(?: {4})+/gm, (spaces) => ' '.repeat(spaces.length / 4))
    for (const place of [ESM, COMMON_JS]) write(path.join(folder, place, file), small)
  }
  rmSync(whole, { recursive: true })
}

const ABOUT_FILE = /^\/\*\*(?:(?!\*\/)[^])*\*\/\n(?=import |export \{|\/\*\*)/
/** A line break inside a comment, but not after a tag. */
const BROKEN_SENTENCE = /(?<=\n *\* [^@\n][^\n]*)\n *\* (?=[\w`])/g

/** The relative imports of declarations. */
const IMPORT = /((?:from |import\()'\.[^'\n]+)\.ts(')/g

function write(file, text) {
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, text)
}

function tsc(...args) {
  const { status, stdout } = spawnSync(process.execPath, [path.join(root, 'node_modules/.bin/tsc'), ...args], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`tsc: ${stdout}`)
}

/** The manifest of the published package. */
function published({ private: _, devDependencies: __, exports, imports, ...manifest }) {
  const entries = Object.entries(exports).map(([name, source]) => {
    const [esm, commonJs] = [ESM, COMMON_JS].map((place) => ({
      types: compiled(source, `./${place}`, '.d.ts'),
      default: compiled(source, `./${place}`, '.js'),
    }))
    // If Node can require ES modules, a program that mixes both forms loads one SDK. TypeScript and old tools know only
    // `require`.
    return { name, commonJs, conditions: { 'module-sync': esm, require: commonJs, default: esm } }
  })
  // For TypeScript's `moduleResolution: node10`, which does not read `exports`.
  const [main, ...others] = entries
  const oldTypes = others.map(({ name, commonJs }) => [name.slice(2), [commonJs.types]])
  return {
    ...manifest,
    version: versionOfBuild(),
    repository: readJson(path.join(root, 'package.json')).repository,
    main: main.commonJs.default,
    types: main.commonJs.types,
    typesVersions: { '*': Object.fromEntries(oldTypes) },
    exports: Object.fromEntries(entries.map(({ name, conditions }) => [name, conditions])),
    imports: inside(imports, `./${ESM}`),
    files: ['dist', 'THIRD-PARTY-LICENSES'],
  }
}

/** The modules that conditions select, in `place`. */
function inside(imports, place) {
  const built = (conditions) =>
    Object.entries(conditions).map(([name, source]) => [name, compiled(source, place, '.js')])
  return Object.fromEntries(
    Object.entries(imports).map(([name, conditions]) => [name, Object.fromEntries(built(conditions))]),
  )
}

/** The path of a compiled source. */
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
  // Run npm with the Node that runs this script.
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
