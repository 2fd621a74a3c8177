/**
 * The TypeScript of every page compiles in a project outside this clone that has the packed SDK, and runs there on each
 * installed Node. Each page of an integration names the packages to install.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { API_KEY, ended, startServer } from '../../cli/test/tacho.ts'
import { placeSdk } from '../../sdk/test/packed-sdk.ts'
import {
  installedNodes,
  installSdk,
  OLD_NODE,
  pages,
  writeBlocks,
  type Project,
} from '../../sdk-programs/test/blocks.ts'
import { DONE } from './scene.ts'
import { startModelServer, type Answer } from '../src/model-server.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const NEW = path.join(ROOT, 'node_modules/.bin/tsc')
/** TypeScript 5.6, a dependency of are-the-types-wrong. `sdk-programs/test/types.test.ts` tests 5.4. */
const OLD = createRequire(
  createRequire(path.join(ROOT, 'packages/sdk/package.json')).resolve('@arethetypeswrong/core'),
).resolve('typescript/bin/tsc')
const inTypeScript = pages.filter(({ file, snippets }) => file.startsWith('docs/integrations/') && snippets.length > 0)

function packagesIn(code: string): string[] {
  const names = Array.from(code.matchAll(/from '([^']+)'/g), ([, name = '']) =>
    name.split('/', name.startsWith('@') ? 2 : 1).join('/'),
  )
  return [...new Set(names)].filter((name) => name !== '@tacho/sdk')
}

let folder: string
const files: Record<Project, string[]> = { alone: [], application: [], frameworks: [] }
before(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'tacho-snippets-'))
  const tarball = await placeSdk(folder)
  for (const project of ['alone', 'application', 'frameworks'] as const) {
    const place = path.join(folder, project)
    files[project] = writeBlocks(place, project)
    installSdk(place, tarball, (name) => project !== 'alone' || name === '@types')
  }
})
after(() => rmSync(folder, { recursive: true }))

/** Compiles, and fails with the compiler's messages. `out` gets the JavaScript, for a Node without TypeScript. */
function compile(project: Project, compiler: string, options: object): void {
  const place = path.join(folder, project)
  const compilerOptions = {
    ...options,
    target: 'es2022',
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: true,
    outDir: 'out',
  }
  writeFileSync(path.join(place, 'tsconfig.json'), JSON.stringify({ compilerOptions, exclude: ['out'] }))
  try {
    // One checker only, because each checker of TypeScript 7 would load the types of the frameworks again.
    const checkers = compiler === NEW ? ['--checkers', '1'] : []
    execFileSync(process.execPath, [compiler, '-p', place, ...checkers], { encoding: 'utf8', cwd: folder })
  } catch (error) {
    assert.fail((error as { stdout: string }).stdout)
  }
}

const ASKS: Answer = { toolCalls: [{ name: 'refund', input: { order: 7 } }] }
const NODE = { module: 'nodenext' }
const BUNDLER = { module: 'preserve', moduleResolution: 'bundler' }
for (const { project, compiler, options } of [
  { project: 'alone', compiler: OLD, options: NODE },
  { project: 'application', compiler: NEW, options: BUNDLER },
] as const) {
  test(`the code of the pages compiles strictly: ${project}, TypeScript ${compiler === NEW ? 7 : '5.6'}`, () => {
    assert.ok(files[project].length >= (project === 'application' ? 2 : 6))
    compile(project, compiler, options)
  })
}

/** Blocks without a run: they read the configuration, are tests, score an earlier run, or are called by a platform. */
const MAKES_NO_RUN = /from 'node:test'|^export default|onChange|spool|The user's click/m
/** Blocks that use `declare` for code of the reader. */
const IS_PART = /^declare /m
/** OpenAI Agents sends traces to OpenAI even with another model address. `openai-agents.test.ts` runs the same calls. */
const CALLS_HOME = ['docs-integrations-openai-agents-1.ts']

for (const project of ['alone', 'frameworks'] as const) {
  test(`the code of the pages compiles strictly with TypeScript 7, and runs: ${project}`, async (t) => {
    compile(project, NEW, NODE)
    const place = path.join(folder, project)
    const nodes = installedNodes()
    if (!OLD_NODE) t.diagnostic('There is no Node 20 on the PATH or in TACHO_TEST_RUNTIMES, so no block ran on it.')
    for (const [version, node] of nodes) {
      const service = await startServer()
      // The model calls the tool of each page once.
      const model = await startModelServer(({ body }) => (/refunded/.test(JSON.stringify(body)) ? DONE : ASKS))
      const read = async (address: string) =>
        (await (await fetch(`${service.url}/openapi/v1${address}`, { headers: { 'x-api-key': API_KEY } })).json()) as {
          items: { runId: string }[]
          events: { eventType: string }[]
        }
      const env = {
        ...process.env,
        NODE_TEST_CONTEXT: undefined,
        NODE_OPTIONS: undefined,
        TACHO_URL: service.url,
        TACHO_API_KEY: API_KEY,
        OPENAI_API_KEY: 'key',
        OPENAI_BASE_URL: `${model.url}/v1`,
        ANTHROPIC_API_KEY: 'key',
        ANTHROPIC_BASE_URL: model.url,
      }
      let runs = 0
      for (const file of files[project]) {
        const code = readFileSync(path.join(place, file), 'utf8')
        const withoutNode = packagesIn(code).find((name) => needsNewer(name, version))
        if (IS_PART.test(code) || CALLS_HOME.includes(file) || withoutNode !== undefined) continue
        await t.test(`${file} on ${version}`, async () => {
          const main = node === OLD_NODE?.[1] ? file.replace(/^(.*)\.ts$/, 'out/$1.js') : file
          const { code: exit, stderr } = await ended(spawn(node, [main], { cwd: place, env }))
          assert.deepEqual([exit, stderr], [0, ''])
          const { items } = await read('/runs?limit=50')
          if (!MAKES_NO_RUN.test(code)) assert.ok(items.length > runs, 'records no run')
          runs = items.length
        })
      }
      const { items } = await read('/runs?limit=50')
      const events = await Promise.all(items.map(async ({ runId }) => (await read(`/runs/${runId}`)).events))
      const types = events.flat().map(({ eventType }) => eventType)
      if (project === 'alone') for (const type of RECORDED) assert.ok(types.includes(type), type)
      else assert.equal(types.filter((type) => type === 'TOOL_CALL').length, items.length, 'each page calls its tool')
      // Texts that the program of the page on masking must mask.
      assert.doesNotMatch(JSON.stringify(events), /I am Ada|ada@example|CASE-12/)
      await model.close()
      await service.stop()
    }
  })
}
const RECORDED = ['USER_INPUT', 'AGENT_STEP', 'LLM_CALL', 'TOOL_CALL', 'ERROR', 'SESSION_OUTCOME', 'HANDOVER']

/** Whether a package declares that it does not run on this Node. */
function needsNewer(name: string, version: string): boolean {
  const manifest = path.join(ROOT, 'node_modules', name, 'package.json')
  if (!existsSync(manifest)) return false
  const { engines } = JSON.parse(readFileSync(manifest, 'utf8')) as { engines?: { node?: string } }
  const least = /^>=\s*(\d+)/.exec(engines?.node ?? '')?.[1]
  return Number(least ?? 0) > Number(/\d+/.exec(version)?.[0])
}

/**
 * The test that checks the blocks of each language. In shell blocks and blocks without a language, commands-doc.test.ts checks
 * commands, flags and endpoints.
 */
const READERS: Record<string, string> = {
  ts: 'this file',
  js: 'packages/sdk-programs/test/guides.test.ts',
  python: 'sdks/python/tests/test_package.py',
  json: 'packages/cli/test/commands-doc.test.ts',
  yaml: 'packages/cli/test/commands-doc.test.ts',
  cel: 'packages/policy/test/readme.test.ts',
  sh: 'packages/cli/test/commands-doc.test.ts',
  bash: 'packages/cli/test/commands-doc.test.ts',
  text: 'packages/cli/test/commands-doc.test.ts',
  '': 'packages/cli/test/commands-doc.test.ts',
}
/**
 * Numbers of blocks that no test checks: statements for PostgreSQL and DuckDB, the settings of Codex, files beside a tape, a
 * test with its fixture (packages/cli/test/tape runs one), and the environment that is added to a ready set.
 */
const BY_HAND = { py: 1, sql: 3, toml: 1, yml: 3 }
/** Pages with parts of a program. They link to the page with the whole program, which is compiled. */
const PARTS = ['docs/sdk/nextjs.md']

test('every block of the pages has a reader, and no code hides in a block without a language', () => {
  const byHand: Record<string, number> = {}
  const hidden: string[] = []
  for (const { file, text } of pages) {
    for (const [, , language = '', code = ''] of text.matchAll(/^( *)```(.*)\n([^]*?)^\1```$/gm)) {
      const reader = READERS[language]
      if (reader === undefined) byHand[language] = (byHand[language] ?? 0) + 1
      else if (reader !== 'this file') assert.ok(existsSync(path.join(ROOT, reader)), reader)
      if (
        language === '' &&
        /^(?:import .+ from |(?:const|return|await|export (?:const|default|async|function)) |from \w+ import |def )/m.test(
          code,
        )
      )
        hidden.push(file)
    }
  }
  assert.deepEqual([byHand, hidden], [BY_HAND, PARTS])
})

test('each page says what to install, and the version that it was tested with', () => {
  const { devDependencies } = JSON.parse(
    readFileSync(path.join(ROOT, 'packages/sdk-integrations/package.json'), 'utf8'),
  ) as { devDependencies: Record<string, string> }
  assert.ok(inTypeScript.length >= 7)
  for (const { name, text, snippets } of inTypeScript) {
    const [, install = ''] = /^npm install \S+\/tacho-sdk-\S+\.tgz (.*?) *#/m.exec(text) ?? []
    assert.deepEqual(install.split(' '), packagesIn(snippets[0] ?? ''), name)
    for (const [, tested = '', version] of text.matchAll(/`([^`]+)` (\d+\.\d+\.\d+)/g)) {
      if (tested in devDependencies) assert.equal(devDependencies[tested], version, `${name}: ${tested}`)
    }
  }
})
