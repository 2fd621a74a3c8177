// Starts the server: `npm start`. Rejects a wrong option before it builds anything.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { root } from './build.mjs'

const tacho = path.join(root, 'packages/cli/bin/tacho')
const args = process.argv.slice(2)

if (!args.some((arg) => ['--help', '-h', '--check'].includes(arg))) {
  const { status } = spawnSync(tacho, ['serve', ...args, '--check'], { stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
  // Build both at the same time, because the first start waits for both.
  const builds = ['build-console.mjs', 'build-program.mjs'].map((script) =>
    once(spawn(process.execPath, [path.join(root, 'scripts', script)], { stdio: 'inherit' }), 'close'),
  )
  await Promise.all(builds)
}
// Replace this process by the server, so that the server gets all signals.
process.execve(tacho, [tacho, 'serve', ...args], process.env)
