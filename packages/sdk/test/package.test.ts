/** The published package, in an empty project. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
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
import { LIMITS as CONTRACT } from '@tacho/contract/engine/limits.ts'
import { LIMITS } from '../src/limits.ts'
import { placeSdk } from './packed-sdk.ts'
import { startScriptedServer } from './scripted-server.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
/** Maximum size of the recording core, minified and compressed. */
const CORE_BYTES = 13_400
/** Maximum size of `import { Tacho }`: the core, prompts and guarded calls, which must copy their input at once. */
const ENTRY_BYTES = 16_600
/** Maximum size of the code that masks and writes events. Node loads it with the core. */
const WRITING_BYTES = 4_950
/** Maximum size of the code that the first batch loads: the network, and the comparison with the service's clock. */
const DELIVERY_BYTES = 2_000
/** Maximum size of a program that only records, in a bundle without code splitting. */
const RECORDER_BYTES = 25_000
/** Maximum size of the npm package. */
const PACKAGE_BYTES = 149_500

let folder: string
let tarball: string

before(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'tacho-package-'))
  tarball = await placeSdk(folder)
})
after(() => rmSync(folder, { recursive: true, force: true }))

/** Size of a bundle, minified and compressed, without code that is imported later. Paths have no folders, as in the package. */
async function bundled(entry: string): Promise<{ bytes: number; inputs: string[] }> {
  const later = {
    name: 'later',
    setup: (bundle: PluginBuild) =>
      bundle.onResolve({ filter: /./ }, ({ kind, path: name }) =>
        kind === 'dynamic-import' ? { path: `./${path.basename(name)}`, external: true } : undefined,
      ),
  }
  const { outputFiles, metafile } = await build({
    stdin: { contents: entry, resolveDir: path.join(ROOT, 'packages/sdk/src') },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    external: ['node:*'],
    // Resolve as for an edge worker.
    conditions: ['workerd'],
    plugins: [later],
    write: false,
    metafile: true,
  })
  const bytes = gzipSync(outputFiles[0]?.contents ?? '', { level: 9 }).byteLength
  return { bytes, inputs: Object.keys(metafile.inputs) }
}

test('the recording core stays under 13.4 kB, and the entry loads only what every client needs', async () => {
  const core = await bundled(
    ['core', 'recording/run', 'delivery/process-end', 'delivery/runtime']
      .map((name) => `export * from './${name}.ts'`)
      .join('\n'),
  )
  assert.ok(core.bytes < CORE_BYTES, `${core.bytes} bytes, at most ${CORE_BYTES} allowed`)
  const entry = await bundled(`export { Tacho } from './index.ts'`)
  assert.ok(entry.bytes < ENTRY_BYTES, `${entry.bytes} bytes, at most ${ENTRY_BYTES} allowed`)
  assert.deepEqual(
    entry.inputs.filter(
      (input) =>
        /polic|spool|guard\.ts|control\.ts|delivery\.ts|process-end/.test(input) && !input.endsWith('lazy-control.ts'),
    ),
    [],
  )
  const writing = await bundled(`export * from './recording/writing.ts'`)
  assert.ok(writing.bytes < WRITING_BYTES, `${writing.bytes} bytes, at most ${WRITING_BYTES} allowed`)
  const delivery = await bundled(`export * from './delivery/delivery.ts'`)
  assert.ok(delivery.bytes < DELIVERY_BYTES, `${delivery.bytes} bytes, at most ${DELIVERY_BYTES} allowed`)
})

test('a program that only records takes at most 25 kB in one file, in Node and on the edge', async () => {
  for (const platform of ['node', 'workerd', 'browser']) {
    const { outputFiles, metafile } = await build({
      entryPoints: [path.join(folder, 'package/dist/esm/record.js')],
      bundle: true,
      minify: true,
      format: 'esm',
      platform: 'neutral',
      external: ['node:*'],
      conditions: [platform],
      write: false,
      metafile: true,
      logLevel: 'error',
    })
    const bytes = gzipSync(outputFiles[0]?.contents ?? '', { level: 9 }).byteLength
    assert.ok(bytes < RECORDER_BYTES, `${platform}: ${bytes} bytes, at most ${RECORDER_BYTES} allowed`)
    assert.ok(!Object.keys(metafile.inputs).some((input) => input.includes('re2')))
  }
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
  // Node reads `imports` of the nearest package.json: the programs in CommonJS (packages/sdk-programs) would not start otherwise.
  const found = messages.filter(({ code }) => !['USE_LICENSE', 'NESTED_PACKAGE_JSON_FIELD_IGNORED'].includes(code))
  assert.deepEqual(
    found.map((message) => formatMessage(message, manifest)),
    [],
  )
  const result = await checkPackage(createPackageFromTarballData(new Uint8Array(data)))
  assert.ok(result.types)
  assert.deepEqual(result.problems, [])
})

test('the declarations name none of our internals', () => {
  const dist = path.join(folder, 'package/dist')
  for (const file of globSync('**/*.d.ts', { cwd: dist })) {
    assert.doesNotMatch(file, /(?:^|\/)(?:core|queue|spool|part|host|control|policies|node)\.d/)
    assert.doesNotMatch(readFileSync(path.join(dist, file), 'utf8'), /\b(?:Runtime|Core|Settings|RunScope)\b/, file)
  }
})

test('the package stays under 149.5 kB, and each part is small enough that gzip stores its two forms once', () => {
  assert.ok(
    statSync(tarball).size <= PACKAGE_BYTES,
    `${statSync(tarball).size} bytes, at most ${PACKAGE_BYTES} allowed`,
  )
  for (const file of globSync('dist/**/*.js', { cwd: path.join(folder, 'package') })) {
    assert.ok(statSync(path.join(folder, 'package', file)).size < 32_000, `${file}: see CUTS in scripts/pack-sdk.mjs`)
  }
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
import { Recorder } from '@tacho/sdk/record'
import { fakeTacho } from '@tacho/sdk/testing'

const tacho = new Tacho({ apiKey: 'key', baseUrl: process.argv[2], onDiagnostic: (said: Diagnostic) => console.log(said.code) })
const answer: number = await tacho.run({ agentName: 'packed' }, async (run) => {
  run.llmCall({ model: 'm', usage: { promptTokens: 1 } })
  return 42
})
const { sent } = await tacho.shutdown()
const recorder = new Recorder({ apiKey: 'key', baseUrl: process.argv[2] })
await recorder.run((run) => void run.step('small'))
const small = await recorder.shutdown()

const policy = { policyId: 'p', name: 'No refunds', version: '1', condition: 'tool.name.matches("^re(fund|turn)$")', severity: 'HIGH', action: 'BLOCK' }
const fake = fakeTacho({ deployedPolicies: [policy] })
const refund = fake.tacho.guard((amount: number) => amount, { name: 'refund' })
const blocked: boolean = await refund(1).then(() => false, (error: unknown) => error instanceof ToolBlockedError)
await fake.close()
console.log(JSON.stringify({ answer, sent: [sent, small.sent], blocked, names: [Tacho.name, Recorder.name, ToolBlockedError.name] }))
`

/** A program of a host, whose types differ between hosts. It is compiled, but never runs. */
const TYPES = `
import { Tacho, type TachoOptions } from '@tacho/sdk'

const given: { enabled: boolean | undefined; agentName: string | undefined } = { enabled: undefined, agentName: undefined }
const options: TachoOptions[] = [
  given,
  { fetch: globalThis.fetch },
  { fetch: async () => new Response('{}') },
  { fetch: async (url, { body }) => ({ status: url === '' ? 200 : body.length, headers: new Headers(), body: null }) },
  { fetch: (url: string, init: RequestInit) => fetch(url, init) },
]
export const clients: Tacho[] = options.map((options) => new Tacho(options))

// A guarded tool keeps all signatures and parameters of the tool.
const tacho = new Tacho()
declare function find(id: number): string
declare function find(name: string, isExact?: boolean): Promise<string[]>
const found = tacho.guard(find, { name: 'find', input: (given, isExact) => ({ given, isExact }), key: (given) => \`\${given satisfies number | string}\` })
export const one: Promise<string> = found(1)
export const many: Promise<string[]> = found('x', true)
// @ts-expect-error no overload takes a boolean
found(true)
declare function load<T>(id: T): Promise<T>
declare function load(id: string, count: number): Promise<number>
const loaded = tacho.guard(load, { name: 'load' })
export const generic: [Promise<5>, Promise<number>] = [loaded<5>(5), loaded('x', 2)]
declare function pick(this: Date, id: 1): 1
declare function pick(this: Date, id: 2): 2
declare function pick(this: Date, id: 3): 3
const picker = Object.assign(new Date(), { pick: tacho.guard(pick, { name: 'pick' }) })
export const picked: [Promise<1>, Promise<2>, Promise<3>] = [picker.pick(1), picker.pick(2), picker.pick(3)]
// @ts-expect-error a method needs its object
tacho.guard(pick, { name: 'pick' })(1)
declare function pay(amount: number, note?: string): string
const paid = tacho.guard(pay, { name: 'pay', input: (amount) => amount.toFixed(2) })
export const noted: Promise<string> = paid(5, 'thanks')
declare const unknownTool: any
export const anything: Promise<unknown> = tacho.guard(unknownTool, { name: 'any' })(1, 2)
export const same: <T>(id: T) => Promise<T> = tacho.guard(<T>(id: T) => id, { name: 'same' })
// @ts-expect-error the name is a text
tacho.guard(pay, { name: 5 })
`

/** TypeScript 5.6, a dependency of are-the-types-wrong. */
const OLD = createRequire(createRequire(import.meta.url).resolve('@arethetypeswrong/core')).resolve(
  'typescript/bin/tsc',
)
const NEW = path.join(ROOT, 'node_modules/.bin/tsc')
/** One checker only, because each would load the same types again. */
const checkersOf = (compiler: string) => (compiler === NEW ? ['--checkers', '1'] : [])
/** The projects in which the declarations compile without `skipLibCheck`. */
const PROJECTS = [
  { title: 'ESM', tsc: NEW, file: 'main.ts', flags: ['--module', 'nodenext'] },
  { title: 'CommonJS', tsc: NEW, file: 'main.cts', flags: ['--module', 'nodenext'] },
  { title: 'a bundler', tsc: NEW, file: 'main.ts', flags: ['--module', 'preserve', '--moduleResolution', 'bundler'] },
  { title: 'ESM of TypeScript 5.6', tsc: OLD, file: 'main.ts', flags: ['--module', 'node16'] },
  { title: 'CommonJS of TypeScript 5.6', tsc: OLD, file: 'main.cts', flags: ['--module', 'node16'] },
  {
    title: 'CommonJS with node10 of TypeScript 5.6',
    tsc: OLD,
    file: 'main.cts',
    flags: ['--module', 'commonjs', '--moduleResolution', 'node10'],
  },
]
// Without the types of Node or a browser.
const STRICT = ['--strict', '--exactOptionalPropertyTypes', '--skipLibCheck', 'false', '--target', 'es2022']
const NO_TYPES = ['--lib', 'es2022', '--typeRoots', 'none']
const run = async (cwd: string, command: string, ...args: string[]): Promise<string> => {
  const env = { ...process.env, PATH: `${path.join(ROOT, 'node_modules/.bin')}${path.delimiter}${process.env['PATH']}` }
  // Asynchronous, because the service runs in this process.
  return (
    await promisify(execFile)(command, args, { cwd, env }).catch(({ stdout, stderr }) => {
      throw new Error(`${stdout}${stderr}`)
    })
  ).stdout
}

test('an empty project installs it, and compiles and runs it in every way', async (t) => {
  const server = await startScriptedServer()
  t.after(server.close)
  const project = path.join(folder, 'project')
  mkdirSync(project)
  writeFileSync(path.join(project, 'package.json'), JSON.stringify({ name: 'empty', private: true, type: 'module' }))
  writeFileSync(path.join(project, 'main.ts'), PROGRAM)
  // CommonJS has no top-level await.
  const [imports, body] = splitAtFirst(PROGRAM.trim(), '\n\n')
  writeFileSync(path.join(project, 'main.cts'), `${imports}\nvoid (async () => {\n${body}\n})()\n`)
  writeFileSync(path.join(project, 'types.ts'), TYPES)
  await run(project, 'npm', 'install', '--offline', '--no-audit', '--no-fund', '--ignore-scripts', tarball)
  writeFileSync(
    path.join(project, 'globals.d.ts'),
    'declare const process: { argv: string[] }; declare const console: { log(text: string): void }',
  )
  for (const { title, tsc, file, flags } of PROJECTS) {
    await t.test(title, async () => {
      const args = [tsc, ...checkersOf(tsc), ...STRICT, ...NO_TYPES, ...flags, file, 'globals.d.ts']
      await run(project, process.execPath, ...args, '--outDir', 'out')
      if (flags.includes('preserve')) return
      const output = await run(project, process.execPath, `out/${file.replace('ts', 'js')}`, server.url)
      assert.deepEqual(JSON.parse(output), {
        answer: 42,
        sent: [2, 2],
        blocked: true,
        names: ['Tacho', 'Recorder', 'ToolBlockedError'],
      })
    })
  }
  const node = ['--types', 'node', '--typeRoots', path.join(ROOT, 'node_modules/@types'), '--lib', 'es2022']
  for (const [tsc, types] of [
    [NEW, node],
    [NEW, ['--typeRoots', 'none', '--lib', 'es2022,dom']],
    [OLD, ['--typeRoots', 'none', '--lib', 'es2022,dom']],
  ] as const)
    await run(
      project,
      process.execPath,
      tsc,
      ...checkersOf(tsc),
      ...STRICT,
      ...types,
      '--module',
      'nodenext',
      '--noEmit',
      'types.ts',
    )
})

function splitAtFirst(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark)
  return [text.slice(0, at), text.slice(at)]
}

test('the limits equal those of the contract', () => {
  for (const [name, limit] of Object.entries(LIMITS)) assert.equal(limit, CONTRACT[name as keyof typeof LIMITS], name)
})
