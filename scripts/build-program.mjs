// Builds the server, the command and the hooks of coding agents into packages/cli/dist, if a source is newer than the build.
// Loading a thousand small files takes longer than all else that a start does. packages/cli/bin/tacho runs the build.
//   main.js, hook.js     what bin/tacho starts
//   <thread>.js          a module of a thread, next to everything that starts it
//   <part>-<hash>.js     shared or loaded on first use
import { globSync, mkdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { isStale, root } from './build.mjs'
import { licencesOf } from './licences.mjs'

const DIST = 'packages/cli/dist'
const MAIN = `${DIST}/main.js`
const SOURCES = ['packages/*/src/**', 'packages/*/package.json', 'package-lock.json', 'scripts/build-program.mjs']
const ENTRIES = {
  main: 'packages/cli/src/main.ts',
  hook: 'packages/guards/src/hook/main.ts',
  // A test compares these with all calls of moduleUrl().
  writer: 'packages/server/src/storage/sqlite/writer.ts',
  reader: 'packages/server/src/storage/sqlite/reader.ts',
  maintenance: 'packages/server/src/storage/sqlite/maintenance.ts',
  'judge-thread': 'packages/server/src/http/judge-thread.ts',
  'parquet-thread': 'packages/server/src/http/operator/parquet/parquet-thread.ts',
  'simulation-thread': 'packages/server/src/jobs/simulation-thread.ts',
  'price-thread': 'packages/server/src/prices/price-thread.ts',
}

/** They read files of their own, or are compiled for one system: an installed program finds them as packages. */
export const EXTERNAL = ['@pydantic/genai-prices', 'better-sqlite3', 'jq-wasm', 'swagger-ui-dist']

const DAY = 86_400_000

/** Resolves with the folder of the build. */
export async function buildProgram() {
  const folder = path.join(root, DIST)
  if (!isStale(MAIN, SOURCES)) return folder
  const startedAt = new Date()
  // Only a build needs it.
  const { build } = await import('esbuild')
  const { metafile, outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: ENTRIES,
    outdir: DIST,
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node26',
    external: EXTERNAL,
    // Packages in CommonJS call it.
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'\nconst require = requireFrom(import.meta.url)",
    },
    metafile: true,
    write: false,
    logLevel: 'warning',
  })
  mkdirSync(folder, { recursive: true })
  const files = outputFiles.map(({ path: file, contents }) => ({ file, contents }))
  files.push({ file: path.join(folder, 'THIRD-PARTY-LICENSES'), contents: licencesOf('This folder', metafile) })
  // The main module comes last: from then on, the build counts.
  const isMain = ({ file }) => Number(file.endsWith('main.js'))
  for (const { file, contents } of files.sort((a, b) => isMain(a) - isMain(b))) {
    const unfinished = `${file}.${process.pid}`
    writeFileSync(unfinished, contents)
    renameSync(unfinished, file)
  }
  // A source that changed meanwhile is newer.
  utimesSync(path.join(root, MAIN), startedAt, startedAt)
  removeOld(folder, startedAt)
  return folder
}

/** A server that runs may still load parts of the build before. */
function removeOld(folder, startedAt) {
  for (const name of globSync('*', { cwd: folder })) {
    const file = path.join(folder, name)
    if (statSync(file).mtimeMs < startedAt.getTime() - DAY) rmSync(file, { force: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await buildProgram().catch((error) => {
    console.error(
      `tacho: the program could not be built (${error.message}). It runs from its sources, and starts more slowly.`,
    )
  })
}
