/** The published package, in an empty project. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { build, type PluginBuild } from 'esbuild'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { packSdk } from '../../../scripts/pack-sdk.mjs'
import { LIMITS as CONTRACT } from '@tacho/contract/limits.ts'
import { LIMITS } from '../src/limits.ts'
import { startScriptedServer } from './scripted-server.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
/** Limit for the recording core, minified and compressed. */
const CORE_BYTES = 13_900
/** Limit for `import { Tacho }`: the core, and the calls for prompts and guarded tools, which copy their input at once. */
const ENTRY_BYTES = 15_900
/** Limit for what masks and writes events; in Node it is loaded with the core. */
const WRITING_BYTES = 4_900
/** Limit for what the first batch loads: the network. */
const DELIVERY_BYTES = 1_820

let folder: string
let tarball: string

before(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'tacho-package-'))
  tarball = await packSdk(folder)
})
after(() => rmSync(folder, { recursive: true, force: true }))

/** Minified and compressed, without what is imported later. */
async function bundled(entry: string): Promise<{ bytes: number; inputs: string[] }> {
  const later = {
    name: 'later',
    setup: (bundle: PluginBuild) =>
      bundle.onResolve({ filter: /./ }, ({ kind, path: name }) =>
        kind === 'dynamic-import' ? { path: name, external: true } : undefined,
      ),
  }
  const { outputFiles, metafile } = await build({
    stdin: { contents: entry, resolveDir: path.join(folder, 'package/dist') },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    external: ['node:*'],
    plugins: [later],
    write: false,
    metafile: true,
  })
  const bytes = gzipSync(outputFiles[0]?.contents ?? '', { level: 9 }).byteLength
  return { bytes, inputs: Object.keys(metafile.inputs) }
}

test('the recording core stays under 13.9 kB, and the entry loads only what every client needs', async () => {
  const core = await bundled(
    ['core', 'run', 'process-end', 'runtime'].map((name) => `export * from './${name}.js'`).join('\n'),
  )
  assert.ok(core.bytes < CORE_BYTES, `${core.bytes} bytes, at most ${CORE_BYTES} allowed`)
  const entry = await bundled(`export { Tacho } from './index.js'`)
  assert.ok(entry.bytes < ENTRY_BYTES, `${entry.bytes} bytes, at most ${ENTRY_BYTES} allowed`)
  assert.deepEqual(
    entry.inputs.filter(
      (input) =>
        /polic|spool|guard\.js|control\.js|delivery|process-end/.test(input) && !input.endsWith('lazy-control.js'),
    ),
    [],
  )
  const writing = await bundled(`export * from './writing.js'`)
  assert.ok(writing.bytes < WRITING_BYTES, `${writing.bytes} bytes, at most ${WRITING_BYTES} allowed`)
  const delivery = await bundled(`export * from './delivery.js'`)
  assert.ok(delivery.bytes < DELIVERY_BYTES, `${delivery.bytes} bytes, at most ${DELIVERY_BYTES} allowed`)
})

test('publint and are-the-types-wrong find nothing', async () => {
  const packed = readFileSync(tarball)
  const data = packed.buffer.slice(packed.byteOffset, packed.byteOffset + packed.byteLength)
  const manifest = JSON.parse(readFileSync(path.join(folder, 'package/package.json'), 'utf8')) as Record<
    string,
    unknown
  >
  const { messages } = await publint({ pkgDir: path.join(folder, 'package'), pack: false, strict: true })
  // The address of the sources is set when the package is published.
  const found = messages.filter(({ code }) => code !== 'USE_LICENSE')
  assert.deepEqual(
    found.map((message) => formatMessage(message, manifest)),
    [],
  )
  const result = await checkPackage(createPackageFromTarballData(new Uint8Array(data)))
  assert.ok(result.types)
  // The package is ESM on purpose; Node 10 does not support `exports`.
  const known = ['CJSResolvesToESM', 'NoResolution']
  const problems = result.problems.filter(({ kind, ...problem }) => {
    const old = 'resolutionKind' in problem && problem.resolutionKind === 'node10'
    return !(known.includes(kind) && (kind === 'CJSResolvesToESM' || old))
  })
  assert.deepEqual(problems, [])
})

test('it has no dependencies', () => {
  const manifest = JSON.parse(readFileSync(path.join(folder, 'package/package.json'), 'utf8')) as Record<
    string,
    unknown
  >
  for (const kind of ['dependencies', 'peerDependencies', 'optionalDependencies', 'private'])
    assert.ok(!(kind in manifest), kind)
})

const PROGRAM = `
import { Tacho, ToolBlockedError, type Diagnostic } from '@tacho/sdk'
import { fakeTacho } from '@tacho/sdk/testing'

const tacho = new Tacho({ apiKey: 'key', baseUrl: process.argv[2], onDiagnostic: (said: Diagnostic) => console.log(said.code) })
const answer: number = await tacho.run({ agentName: 'packed' }, async (run) => {
  run.llmCall({ model: 'm', usage: { promptTokens: 1 } })
  return 42
})
const { sent } = await tacho.shutdown()

const policy = { policyId: 'p', name: 'No refunds', version: '1', condition: 'tool.name == "refund"', severity: 'HIGH', action: 'BLOCK' }
const fake = fakeTacho({ deployedPolicies: [policy] })
const refund = fake.tacho.guard((amount: number) => amount, { name: 'refund' })
const blocked: boolean = await refund(1).then(() => false, (error: unknown) => error instanceof ToolBlockedError)
await fake.close()
console.log(JSON.stringify({ answer, sent, blocked }))
`

test('an empty project installs, compiles and runs it', async (t) => {
  const server = await startScriptedServer()
  t.after(server.close)
  const project = path.join(folder, 'project')
  mkdirSync(project)
  writeFileSync(path.join(project, 'package.json'), JSON.stringify({ name: 'empty', private: true, type: 'module' }))
  writeFileSync(path.join(project, 'main.ts'), PROGRAM)
  const env = { ...process.env, PATH: `${path.join(ROOT, 'node_modules/.bin')}${path.delimiter}${process.env['PATH']}` }
  // Asynchronous, because the service runs in this process.
  const run = async (command: string, ...args: string[]): Promise<string> =>
    (await promisify(execFile)(command, args, { cwd: project, env })).stdout
  await run('npm', 'install', '--offline', '--no-audit', '--no-fund', '--ignore-scripts', tarball)
  // Check the declarations too, without the types of Node or a browser.
  writeFileSync(
    path.join(project, 'globals.d.ts'),
    'declare const process: { argv: string[] }; declare const console: { log(text: string): void }',
  )
  const strict = [
    '--strict',
    '--exactOptionalPropertyTypes',
    '--skipLibCheck',
    'false',
    '--lib',
    'es2023',
    '--types',
    '',
  ]
  const tsc = path.join(ROOT, 'node_modules/.bin/tsc')
  await run(process.execPath, tsc, '--module', 'nodenext', '--target', 'es2023', ...strict, 'main.ts', 'globals.d.ts')
  const output = await run(process.execPath, 'main.js', server.url)
  assert.deepEqual(JSON.parse(output), { answer: 42, sent: 2, blocked: true })
})

test('the limits equal those of the contract', () => {
  for (const [name, limit] of Object.entries(LIMITS)) assert.equal(limit, CONTRACT[name as keyof typeof LIMITS], name)
})
