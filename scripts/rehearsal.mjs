// Shared by scripts/rehearse.mjs and scripts/neighbours.mjs: runs commands, starts servers, and makes empty projects.
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const START_MS = 60_000

const children = []
process.on('exit', () => children.forEach((child) => child.kill()))

/** Returns the output of a command. If the command fails, throws an error with the output. */
export const run = (cwd, command, args, env = {}) =>
  execFileSync(command, args, {
    cwd,
    env: { ...process.env, ...env },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })

export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.on('listening', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Starts a server program, and waits until it answers. */
export async function serve(command, args, address, { cwd, env = {} } = {}) {
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  children.push(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  const until = performance.now() + START_MS
  while (child.exitCode === null && performance.now() < until) {
    if (
      await fetch(address).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      return { child, output: () => output }
    await sleep(20)
  }
  throw new Error(`${command} ${args.join(' ')} does not answer:\n${output}`)
}

/** Makes a project with only these files. */
export function project(home, name, files) {
  const folder = path.join(home, name)
  mkdirSync(folder)
  for (const [file, text] of Object.entries(files)) writeFileSync(path.join(folder, file), text)
  return folder
}
