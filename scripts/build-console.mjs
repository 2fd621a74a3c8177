// Builds the console into packages/console/dist when a source is newer than what is there. Vite takes half a second.
// The new folder takes the old one's place at the end, so that a server never serves half of one.
import { spawnSync } from 'node:child_process'
import { chmodSync, globSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, gzipSync } from 'node:zlib'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = path.join(root, 'packages/console')
const dist = path.join(folder, 'dist')
const SOURCES = [
  'packages/{console,client,contract}/{src/**/*.*,package.json}',
  'packages/console/{index.html,vite.config.ts}',
]

if (isStale()) {
  console.log('Building the console…')
  build()
}

function isStale() {
  try {
    const builtAt = statSync(path.join(dist, 'index.html')).mtimeMs
    return globSync(SOURCES, { cwd: root }).some((file) => statSync(path.join(root, file)).mtimeMs > builtAt)
  } catch {
    return true
  }
}

function build() {
  const made = mkdtempSync(path.join(folder, 'dist-'))
  const vite = path.join(root, 'node_modules/vite/bin/vite.js')
  const args = [vite, 'build', '--logLevel', 'warn', '--outDir', made, '--emptyOutDir']
  const { status } = spawnSync(process.execPath, args, { cwd: folder, stdio: 'inherit' })
  if (status !== 0) {
    rmSync(made, { recursive: true })
    console.error('tacho: the console could not be built; Vite says why above. The server can run without it.')
    return
  }
  for (const file of globSync('assets/*.{js,css,svg}', { cwd: made })) {
    const whole = path.join(made, file)
    const bytes = readFileSync(whole)
    writeFileSync(`${whole}.gz`, gzipSync(bytes))
    writeFileSync(`${whole}.br`, brotliCompressSync(bytes))
  }
  // A temporary folder is its maker's alone; the server may run as somebody else.
  chmodSync(made, 0o755)
  try {
    rmSync(dist, { recursive: true, force: true })
    renameSync(made, dist)
  } catch (error) {
    rmSync(made, { recursive: true })
    // Another build was quicker: it had the same sources.
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
  }
}
