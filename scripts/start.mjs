// Starts the server: `npm start`. A wrong option is refused before anything is built.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { root } from './build.mjs'

const tacho = path.join(root, 'packages/cli/bin/tacho')
const args = process.argv.slice(2)

if (!args.some((arg) => ['--help', '-h', '--check'].includes(arg))) {
  const { status } = spawnSync(tacho, ['serve', ...args, '--check'], { stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
  // Beside each other: the first start waits for both.
  const builds = ['build-console.mjs', 'build-program.mjs'].map((script) =>
    once(spawn(process.execPath, [path.join(root, 'scripts', script)], { stdio: 'inherit' }), 'close'),
  )
  await Promise.all(builds)
}
// The server replaces this process, so that signals reach it.
process.execve(tacho, [tacho, 'serve', ...args], process.env)
