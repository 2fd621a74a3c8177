// Makes one package of the server, the console and the command, which runs without this repository:
//   npm run pack            writes tacho-<version>.tgz
//   npx ./tacho-0.1.0.tgz serve
// Files are where they are in the repository, so the program finds them in the same way.
import { execFileSync } from 'node:child_process'
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { EXTERNAL, writeProgram } from './build-program.mjs'
import { root } from './build.mjs'

const FILES = [
  'packages/cli/{bin,package.json}',
  'packages/console/dist',
  'packages/server/package.json',
  // Sources are in the build; the program reads the others as files.
  'packages/server/src/**/*.{sql,css,svg}',
  'packages/policy/README.md',
  'docs',
  'scripts/node',
  'README.md',
  'LICENSE',
]

function manifest() {
  const { name, version, description, license, type, engines, optionalDependencies } = readJson('package.json')
  const files = globSync('packages/*/package.json', { cwd: root })
  const versions = new Map(files.flatMap((file) => Object.entries(readJson(file).dependencies ?? {})))
  const dependencies = Object.fromEntries(EXTERNAL.map((one) => [one, versions.get(one)]))
  const bin = { tacho: 'packages/cli/bin/tacho' }
  return { name, version, description, license, type, engines, bin, dependencies, optionalDependencies }
}

function readJson(file) {
  return JSON.parse(readFileSync(path.join(root, file), 'utf8'))
}

/** Packs the package into `folder` and resolves with the path of the tarball. */
export async function pack(folder) {
  execFileSync(process.execPath, [path.join(root, 'scripts/build-console.mjs')], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const staged = mkdtempSync(path.join(tmpdir(), 'tacho-pack-'))
  try {
    for (const file of globSync(FILES, { cwd: root })) {
      cpSync(path.join(root, file), path.join(staged, file), { recursive: true })
    }
    await writeProgram(path.join(staged, 'packages/cli/dist'))
    writeFileSync(path.join(staged, 'package.json'), `${JSON.stringify(manifest(), null, 2)}\n`)
    const env = { ...process.env, PATH: `${path.join(root, 'node_modules/.bin')}${path.delimiter}${process.env.PATH}` }
    const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]
    const packed = execFileSync('npm', args, { cwd: staged, env, encoding: 'utf8' })
    return path.join(folder, JSON.parse(packed)[0].filename)
  } finally {
    rmSync(staged, { recursive: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(await pack(path.resolve(process.argv[2] ?? '.')))
}
