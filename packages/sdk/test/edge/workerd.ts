/** Workers in workerd, the runtime of Cloudflare Workers. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TestContext } from 'node:test'
import { build, type BuildOptions, type Plugin } from 'esbuild'
import { installed } from './edge-runtime.ts'

const workerd = installed('workerd') as { default: string } | undefined
export const withoutWorkerd = workerd === undefined && 'workerd is not installed for this platform.'

/** Provides these modules, by name, to a bundle. */
export function written(modules: ReadonlyMap<string, string>): Plugin {
  return {
    name: 'written',
    setup(bundle) {
      bundle.onResolve({ filter: /./ }, ({ path: name }) =>
        modules.has(name) ? { path: name, namespace: 'written' } : undefined,
      )
      bundle.onLoad({ filter: /./, namespace: 'written' }, ({ path: name }) => ({ contents: modules.get(name) ?? '' }))
    },
  }
}

export interface Worker {
  readonly name: string
  readonly code: string
  /** Source of the module `variant`. */
  readonly variant?: string
  readonly flags: readonly string[]
  /** Compatibility date, which selects the rules of the runtime. */
  readonly date: string
  readonly bindings?: Readonly<Record<string, string>>
}

const CONDITIONS = ['workerd', 'worker', 'browser']

/** Bundles into one file, except the module `variant`, as `wrangler` does. @param entry a file in this folder, or a program. */
export async function bundled(entry: string, given: Partial<BuildOptions> = {}): Promise<string> {
  const isProgram = entry.includes('\n')
  const { outputFiles } = await build({
    ...(isProgram && { stdin: { contents: entry, resolveDir: import.meta.dirname, loader: 'ts' } }),
    ...(!isProgram && { entryPoints: [path.join(import.meta.dirname, entry)] }),
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    conditions: CONDITIONS,
    external: ['node:*', 'cloudflare:*', 'variant'],
    logLevel: 'silent',
    ...given,
    write: false,
  })
  return outputFiles[0]?.text ?? ''
}

/** Starts the workers in one process. Resolves with their addresses by name. */
export async function startWorkers(t: TestContext, workers: readonly Worker[]): Promise<Map<string, string>> {
  const folder = mkdtempSync(path.join(tmpdir(), 'tacho-workerd-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  for (const { name, code, variant = '' } of workers) {
    writeFileSync(path.join(folder, `${name}.js`), code)
    writeFileSync(path.join(folder, `${name}.variant.js`), variant)
  }
  const services = workers.map(({ name }) => `(name = "${name}", worker = .${idOf(name)})`)
  const sockets = workers.map(
    ({ name }) => `(name = "${name}", address = "127.0.0.1:0", http = (), service = "${name}")`,
  )
  const definitions = workers.map(
    ({ name, date, flags, bindings = {} }) => `const ${idOf(name)} :Workerd.Worker = (
  modules = [
    (name = "worker", esModule = embed "${name}.js"),
    (name = "variant", esModule = embed "${name}.variant.js"),
  ],
  bindings = [${Object.entries(bindings)
    .map(([key, text]) => `(name = "${key}", text = "${text}")`)
    .join(', ')}],
  compatibilityDate = "${date}",
  compatibilityFlags = [${flags.map((flag) => `"${flag}"`).join(', ')}],
);`,
  )
  const config = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "internet", network = (allow = ["public", "private", "local"])), ${services.join(', ')}],
  sockets = [${sockets.join(', ')}],
);
${definitions.join('\n')}
`
  writeFileSync(path.join(folder, 'config.capnp'), config)
  const child = spawn(workerd?.default ?? '', ['serve', '--control-fd=3', 'config.capnp'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  })
  let errors = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const closed = new Promise((resolve) => child.once('close', resolve))
  t.after(async () => {
    child.kill('SIGKILL')
    await closed
    for (const pipe of child.stdio) pipe?.destroy()
  })
  const addresses = new Map<string, string>()
  return new Promise((resolve, reject) => {
    let said = ''
    child.stdio[3]?.on('data', (piece: Buffer) => {
      said += piece.toString()
      for (const line of said.split('\n').slice(0, -1)) {
        const { event, socket, port } = JSON.parse(line) as { event: string; socket: string; port: number }
        if (event === 'listen') addresses.set(socket, `http://127.0.0.1:${port}`)
      }
      said = said.slice(said.lastIndexOf('\n') + 1)
      if (addresses.size === workers.length) resolve(addresses)
    })
    child.once('error', reject)
    child.once('close', () => reject(new Error(`workerd ended:\n${errors}`)))
  })
}

const idOf = (name: string) => name.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
