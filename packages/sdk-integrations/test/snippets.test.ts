/** The TypeScript of every page compiles in a project that has the packed SDK, and each page of an integration says what to install. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { packSdk } from '../../../scripts/pack-sdk.mjs'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
/** Their packages are too large for every installation. `sdk-programs/test/guides.test.ts` compiles NestJS. */
const NOT_INSTALLED = ['claude-agent-sdk', 'servers']
/** What fragments leave out: the guide to recording shows single calls. */
const PRELUDE: Record<string, string> = {
  'docs/recording.md': `import { Tacho } from '@tacho/sdk'\nconst tacho = new Tacho()\nconst run = tacho.startRun()\n`,
}
const NEW = path.join(ROOT, 'node_modules/.bin/tsc')
/** TypeScript 5.6, which are-the-types-wrong brings. */
const OLD = createRequire(
  createRequire(path.join(ROOT, 'packages/sdk/package.json')).resolve('@arethetypeswrong/core'),
).resolve('typescript/bin/tsc')

const pages = globSync(['README.md', 'docs/**/*.md', '{packages/sdk,sdks/python}/README.md'], {
  cwd: ROOT,
  exclude: ['docs/decisions/**', '**/node_modules/**'],
}).map((file) => {
  const text = readFileSync(path.join(ROOT, file), 'utf8')
  const snippets = Array.from(text.matchAll(/^```(?:ts|typescript)\n(.*?)^```$/gms), ([, code = '']) => code)
  return { file, name: path.basename(file, '.md'), text, snippets }
})
const inTypeScript = pages.filter(({ file, snippets }) => file.startsWith('docs/integrations/') && snippets.length > 0)

function packagesIn(code: string): string[] {
  const names = Array.from(code.matchAll(/from '([^']+)'/g), ([, name = '']) =>
    name.split('/', name.startsWith('@') ? 2 : 1).join('/'),
  )
  return [...new Set(names)].filter((name) => name !== '@tacho/sdk')
}

let folder: string
before(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'tacho-snippets-'))
  const modules = path.join(folder, 'node_modules')
  const sdk = path.join(modules, '@tacho/sdk')
  mkdirSync(sdk, { recursive: true })
  // The packed SDK, and the frameworks as they are installed: nothing else of this repository.
  execFileSync('tar', ['-xzf', await packSdk(folder), '-C', sdk, '--strip-components=1'])
  for (const name of readdirSync(path.join(ROOT, 'node_modules')).filter(
    (one) => one !== '@tacho' && !one.startsWith('.'),
  )) {
    symlinkSync(path.join(ROOT, 'node_modules', name), path.join(modules, name))
  }
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}')
  for (const { file, name, snippets } of pages) {
    if (NOT_INSTALLED.includes(name)) continue
    // A page that names its files is of an application, which a bundler builds.
    const isApp = snippets.every((code) => /^\/\/ \S+\.tsx?\n/.test(code))
    for (const [n, code] of snippets.entries()) {
      const project = isApp ? 'application' : file.startsWith('docs/integrations/') ? 'frameworks' : 'alone'
      const [, named = `${file.replaceAll('/', '-')}-${n}.ts`] = isApp ? (/^\/\/ (\S+)/.exec(code) ?? []) : []
      const target = path.join(folder, project, named)
      mkdirSync(path.dirname(target), { recursive: true })
      // Else two scripts would share their names.
      writeFileSync(target, `${PRELUDE[file] ?? ''}${code}\nexport {}\n`)
    }
  }
})
after(() => rmSync(folder, { recursive: true }))

const NODE = { module: 'nodenext' }
const BUNDLER = { module: 'preserve', moduleResolution: 'bundler' }
for (const { project, compiler, options } of [
  { project: 'alone', compiler: NEW, options: NODE },
  { project: 'alone', compiler: OLD, options: NODE },
  { project: 'application', compiler: NEW, options: BUNDLER },
  { project: 'frameworks', compiler: NEW, options: NODE },
]) {
  test(`the code of the pages compiles strictly: ${project}, TypeScript ${compiler === NEW ? 7 : '5.6'}`, () => {
    const compilerOptions = {
      ...options,
      target: 'es2022',
      types: ['node'],
      strict: true,
      noEmit: true,
      skipLibCheck: true,
    }
    const place = path.join(folder, project)
    assert.ok(readdirSync(place).length >= (project === 'application' ? 2 : 6))
    writeFileSync(path.join(place, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
    try {
      execFileSync(process.execPath, [compiler, '-p', place], { encoding: 'utf8', cwd: folder })
    } catch (error) {
      assert.fail((error as { stdout: string }).stdout)
    }
  })
}

/** What reads the blocks of a language. Shell, and blocks without a language: commands-doc.test.ts looks up commands, flags and endpoints. */
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
/** No test reads these blocks: statements for PostgreSQL and DuckDB, the settings of Codex, files beside a tape, a test with its fixture (packages/cli/test/tape runs one). */
const BY_HAND = { py: 1, sql: 3, toml: 1, yml: 2 }
/** A part of the page that it links to, where the whole is compiled. */
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
