// Builds the server, the command and the hooks of coding agents into packages/cli/dist, if a source is newer than the
// build. Without a build, a start would mostly load a thousand small files. packages/cli/bin/tacho runs the build.
//   main.js, hook.cjs    what bin/tacho starts
//   run-hook.cjs         the rest of the hook, loaded only for calls that need it, because an agent waits for the hook
//   <name>-<build>.js    a module of a thread, next to everything that starts it, and the server for tests
//   <part>-<hash>.js     shared or loaded on first use
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { isStale, root } from './build.mjs'
import { licencesOf } from './licences.mjs'

const DIST = 'packages/cli/dist'
const MAIN = 'main.js'
/** bin/tacho compares the same files with the build. */
const SOURCES = [
  'packages/*/src/**',
  'packages/*/package.json',
  'package.json',
  'package-lock.json',
  'scripts/build-program.mjs',
]
const PROGRAMS = { main: 'packages/cli/src/main.ts' }
/** `import` of a Node module reads all its exports, which loads half of Node. `require` loads only that module. */
const HOOK = {
  entryPoints: { hook: 'packages/guards/src/hook/main.ts', 'run-hook': 'packages/guards/src/hook/run-hook.ts' },
  format: 'cjs',
  outExtension: { '.js': '.cjs' },
  supported: { 'dynamic-import': false },
  banner: {},
  plugins: [
    {
      name: 'the rest of the hook is a file of its own',
      setup: ({ onResolve }) =>
        onResolve({ filter: /^\.\/run-hook\.ts$/ }, ({ kind }) =>
          kind === 'dynamic-import' ? { path: './run-hook.cjs', external: true } : undefined,
        ),
    },
  ],
}
/**
 * `import` of node:http reads all its exports; that of `WebSocket` loads Node's fetch, which takes as long as the rest of a
 * short command.
 */
const HTTP_ALONE = {
  name: 'node:http without its fetch',
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /^node:http$/ }, ({ path: name, kind }) =>
      kind === 'import-statement' ? { path: name, namespace: 'alone' } : undefined,
    )
    onLoad({ filter: /.*/, namespace: 'alone' }, ({ path: name }) => ({
      contents: `module.exports = process.getBuiltinModule('${name}')`,
    }))
  },
}

/** A test compares this list with all calls of moduleUrl(). */
export const THREADS = {
  writer: 'packages/server/src/storage/sqlite/writer.ts',
  reader: 'packages/server/src/storage/sqlite/reader.ts',
  'validation-thread': 'packages/server/src/http/record/validation-thread.ts',
  'parquet-thread': 'packages/server/src/http/data/parquet-thread.ts',
  'simulation-thread': 'packages/server/src/jobs/policies/simulation-thread.ts',
  'price-thread': 'packages/server/src/prices/price-thread.ts',
}

/** These packages read their own files, or are compiled for one system. An installed program finds them as packages. */
export const EXTERNAL = ['@pydantic/genai-prices', 'better-sqlite3']

/** Tests start this entry in a separate process. */
const SERVER = { 'server-process': 'packages/server/src/process/main.ts' }

const DAY = 86_400_000

/** Resolves with the folder of the build. */
export async function buildProgram() {
  const folder = path.join(root, DIST)
  if (!isStale(path.join(DIST, MAIN), SOURCES)) return folder
  const before = statSync(path.join(folder, MAIN), { throwIfNoEntry: false })?.mtimeMs ?? 0
  const startedAt = new Date()
  const names = await writeProgram(folder)
  // Set the build's time to its start: a source that changed since is then newer.
  utimesSync(path.join(folder, MAIN), startedAt, startedAt)
  removeOld(folder, names, { before, now: startedAt.getTime() })
  return folder
}

/** Builds into `folder`. Resolves with the names of the files. */
export async function writeProgram(folder) {
  // Loaded here, because only a build needs it.
  const { build } = await import('esbuild')
  const id = idOfSources()
  const named = (list) => Object.entries(list).map(([name, file]) => ({ [`${name}-${id}`]: file }))
  const options = {
    absWorkingDir: root,
    outdir: DIST,
    chunkNames: '[name]-[hash]',
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node26',
    external: EXTERNAL,
    // Constants that program/program.ts and the hook read.
    define: { TACHO_BUILD: JSON.stringify(id), TACHO_VERSION: JSON.stringify(versionOfBuild()) },
    // Defines `require`, which packages in CommonJS call.
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'\nconst require = requireFrom(import.meta.url)",
    },
    plugins: [HTTP_ALONE],
    metafile: true,
    write: false,
    logLevel: 'warning',
  }
  // A thread shares no file with the rest: one file loads in two thirds of the time of a dozen.
  const entries = [Object.assign({}, PROGRAMS, ...named(SERVER)), ...named(THREADS)]
  const parts = await Promise.all([
    ...entries.map((entryPoints) => build({ ...options, entryPoints, splitting: true })),
    build({ ...options, ...HOOK }),
  ])
  const files = parts.flatMap(({ outputFiles }) =>
    outputFiles.map(({ path: file, contents }) => ({ name: path.basename(file), contents })),
  )
  const inputs = Object.assign({}, ...parts.map(({ metafile }) => metafile.inputs))
  files.push({ name: 'THIRD-PARTY-LICENSES', contents: licencesOf('This folder', { inputs }) })
  // Write the main module last. From then on, the build is complete.
  files.sort((a, b) => Number(a.name === MAIN) - Number(b.name === MAIN))
  mkdirSync(folder, { recursive: true })
  for (const { name, contents } of files) {
    const unfinished = path.join(folder, `${name}.${process.pid}`)
    writeFileSync(unfinished, contents)
    renameSync(unfinished, path.join(folder, name))
  }
  return files.map(({ name }) => name)
}

/**
 * The modules of the server and its threads, once the program is built.
 *
 * @returns {[source: string, built: string][]} addresses of files
 */
export function builtModules() {
  const id = idOfSources()
  const urlOf = (file) => pathToFileURL(path.join(root, file)).href
  return Object.entries({ ...THREADS, ...SERVER })
    .map(([name, file]) => [file, path.join(DIST, `${name}-${id}.js`)])
    .filter(([, file]) => existsSync(path.join(root, file)))
    .map((pair) => pair.map(urlOf))
}

/**
 * The version of all packages. A release is a commit with a tag. An image has no repository: there, BUILD_COMMIT names
 * the commit, and BUILD_RELEASE the version of a release.
 */
export function versionOfBuild() {
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'))
  const git = (...args) => spawnSync('git', args, { cwd: root, encoding: 'utf8' })
  const { status, stdout } = git('rev-parse', '--short=8', 'HEAD')
  const commit = status === 0 ? stdout.trim() : process.env.BUILD_COMMIT?.slice(0, 8)
  if (status !== 0 && process.env.BUILD_RELEASE === version) return version
  if (!commit) return `${version}-dev+sources.${idOfSources()}`
  const isChanged =
    git('status', '--porcelain', '--', 'packages', 'sdks', 'package.json', 'package-lock.json').stdout !== ''
  const isRelease = status === 0 && git('tag', '--points-at', 'HEAD').stdout.split('\n').includes(`v${version}`)
  if (isChanged && status === 0) return `${version}-dev+${commit}.changed`
  return isRelease ? version : `${version}-dev+${commit}`
}

/** An id of the sources. A running server starts threads only from its own build. */
function idOfSources() {
  const hash = createHash('sha256')
  for (const file of globSync(SOURCES, { cwd: root }).sort()) {
    const whole = path.join(root, file)
    if (statSync(whole).isFile()) hash.update(readFileSync(whole))
  }
  return hash.digest('hex').slice(0, 8)
}

/**
 * Removes files of an earlier build a day after it was replaced. Until then, a running server may load them.
 * @param {string} folder
 * @param {string[]} names the files of the new build
 * @param {{ before: number, now: number }} times when the earlier and the new build began, in Unix milliseconds
 */
export function removeOld(folder, names, { before, now }) {
  for (const name of readdirSync(folder)) {
    const file = path.join(folder, name)
    // Another build may have renamed the file in the meantime.
    const time = statSync(file, { throwIfNoEntry: false })?.mtimeMs
    if (names.includes(name) || time === undefined) continue
    // The file was replaced just now. The new time marks it as part of no build.
    if (time >= before) utimesSync(file, new Date(now - 1), new Date(now - 1))
    else if (time < now - DAY) rmSync(file, { force: true })
  }
}

/** Builds the program. If that fails, the program runs from its sources. */
export async function tryToBuild() {
  try {
    await buildProgram()
  } catch (error) {
    console.error(
      `tacho: the program could not be built (${error.message}). It runs from its sources, and starts more slowly.`,
    )
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await tryToBuild()
