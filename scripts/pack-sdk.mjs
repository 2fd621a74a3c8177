// Makes the package that is published from packages/sdk, and prints the path of its tarball.
//   scripts/node scripts/pack-sdk.mjs <folder>
// Sources are compiled by tsc, file by file. Only the policy engine is bundled: it comes from packages of this
// repository that are not published, and the SDK must have no dependencies.
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { root } from './build.mjs'
import { licencesOf } from './licences.mjs'

const sdk = path.join(root, 'packages/sdk')

/** Fills `folder` with the package, ready for `npm pack`. */
export async function buildSdk(folder) {
  const dist = path.join(folder, 'dist')
  tsc('-p', path.join(sdk, 'tsconfig.build.json'), '--outDir', dist)
  writeEngineTypes(dist)
  // tsc keeps `.ts` in declarations, which older compilers refuse.
  for (const file of globSync('**/*.d.ts', { cwd: dist }).map((name) => path.join(dist, name))) {
    writeFileSync(file, readFileSync(file, 'utf8').replace(/((?:from |import\()'\.[^'\n]+)\.ts'/g, "$1.js'"))
  }
  const { metafile } = await build({
    entryPoints: [path.join(sdk, 'src/policies.ts')],
    outfile: path.join(dist, 'policies.js'),
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    target: 'es2023',
    mainFields: ['module', 'main'],
    minifySyntax: true,
    metafile: true,
    allowOverwrite: true,
    logLevel: 'warning',
  })
  writeFileSync(path.join(folder, 'THIRD-PARTY-LICENSES'), licencesOf('dist/policies.js', metafile))

  const { private: _, devDependencies: __, exports, imports, ...manifest } = readJson(path.join(sdk, 'package.json'))
  writeFileSync(
    path.join(folder, 'package.json'),
    `${JSON.stringify({ ...manifest, ...published(exports, imports) }, null, 2)}\n`,
  )
  cpSync(path.join(sdk, 'README.md'), path.join(folder, 'README.md'))
  cpSync(path.join(root, 'LICENSE'), path.join(folder, 'LICENSE'))
}

/** Declarations of the engine: of what policies.d.ts names, and what that names in turn. */
function writeEngineTypes(dist) {
  const policy = path.join(root, 'packages/policy')
  const all = mkdtempSync(path.join(tmpdir(), 'tacho-policy-'))
  const types = path.join(dist, 'policies.d.ts')
  const text = readFileSync(types, 'utf8').replace(/'@tacho\/policy\/(.+)\.ts'/g, "'./policy/$1.js'")
  writeFileSync(types, text)
  const emit = ['--noEmit', 'false', '--declaration', '--emitDeclarationOnly', '--rewriteRelativeImportExtensions']
  try {
    tsc('-p', policy, ...emit, '--rootDir', path.join(policy, 'src'), '--outDir', all)
    const open = namesIn(text, /'\.\/policy\/([^']+)\.(?:js|ts)'/g)
    for (const name of open) {
      const file = `${name}.d.ts`
      cpSync(path.join(all, file), path.join(dist, 'policy', file))
      // A set grows while it is walked.
      for (const next of namesIn(readFileSync(path.join(all, file), 'utf8'), /'\.\/([^']+)\.(?:js|ts)'/g))
        open.add(next)
    }
  } finally {
    rmSync(all, { recursive: true, force: true })
  }
}

function namesIn(text, pattern) {
  return new Set([...text.matchAll(pattern)].map(([, name]) => name))
}

function tsc(...args) {
  const { status, stdout } = spawnSync(process.execPath, [path.join(root, 'node_modules/.bin/tsc'), ...args], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`tsc: ${stdout}`)
}

/** The entries of the sources, as what they are compiled to. */
function published(exports, imports) {
  const compiled = (source, ending) => source.replace('./src/', './dist/').replace(/\.ts$/, ending)
  const entries = Object.entries(exports).map(([name, source]) => [
    name,
    { types: compiled(source, '.d.ts'), default: compiled(source, '.js') },
  ])
  const inside = JSON.parse(JSON.stringify(imports).replace(/\.\/src\/([^"]+)\.ts/g, './dist/$1.js'))
  return { exports: Object.fromEntries(entries), imports: inside, files: ['dist', 'THIRD-PARTY-LICENSES'] }
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
  if (!folder) {
    console.error('Usage: scripts/node scripts/pack-sdk.mjs <folder>')
    process.exit(2)
  }
  console.log(await packSdk(path.resolve(folder)))
}
