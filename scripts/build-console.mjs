// Builds the console into packages/console/dist if a source is newer than the build. Vite takes half a second. The new
// folder replaces the old one at the end, so that a server never serves an incomplete build.
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { compressAssets, isStale, QUICK, root } from './build.mjs'

const folder = path.join(root, 'packages/console')
const dist = path.join(folder, 'dist')
const SOURCES = [
  'packages/{console,client,contract,policy}/{src/**,package.json}',
  'packages/console/{index.html,vite.config.ts,public/**}',
  'examples/policies/*.yaml',
]

if (isStale('packages/console/dist/index.html', SOURCES)) {
  console.log('Building the console…')
  try {
    await build()
  } catch (error) {
    console.error(`tacho: the console could not be built (${error.message}). The server can run without it.`)
  }
}

async function build() {
  const made = mkdtempSync(path.join(folder, 'dist-'))
  const vite = path.join(root, 'node_modules/vite/bin/vite.js')
  const args = [vite, 'build', '--logLevel', 'warn', '--outDir', made, '--emptyOutDir']
  const { status } = spawnSync(process.execPath, args, { cwd: folder, stdio: 'inherit' })
  if (status !== 0) {
    rmSync(made, { recursive: true })
    console.error(
      'tacho: the console could not be built; Vite printed the reason above. The server can run without it.',
    )
    return
  }
  await compressAssets(made, QUICK)
  // Only the owner can read a temporary folder, but the server may run as another user.
  chmodSync(made, 0o755)
  try {
    rmSync(dist, { recursive: true, force: true })
    renameSync(made, dist)
  } catch (error) {
    rmSync(made, { recursive: true })
    // Another build of the same sources finished first.
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
  }
}
