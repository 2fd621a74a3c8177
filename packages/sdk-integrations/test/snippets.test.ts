/** The examples of docs/integrations compile at the versions that the pages name, and each page says what to install. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
/** Its package is too large for every installation. */
const NOT_INSTALLED = ['claude-agent-sdk']

const pages = globSync('docs/integrations/*.md', { cwd: ROOT }).map((file) => {
  const text = readFileSync(path.join(ROOT, file), 'utf8')
  const snippets = Array.from(text.matchAll(/^```ts\n(.*?)^```$/gms), ([, code = '']) => code)
  return { name: path.basename(file, '.md'), text, snippets }
})
const inTypeScript = pages.filter(({ snippets }) => snippets.length > 0)

function packagesIn(code: string): string[] {
  const names = Array.from(code.matchAll(/from '([^']+)'/g), ([, name = '']) =>
    name.split('/', name.startsWith('@') ? 2 : 1).join('/'),
  )
  return [...new Set(names)].filter((name) => name !== '@tacho/sdk')
}

test('the examples compile', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'tacho-snippets-'))
  try {
    symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'))
    for (const { name, snippets } of inTypeScript) {
      if (NOT_INSTALLED.includes(name)) continue
      for (const [n, code] of snippets.entries()) writeFileSync(path.join(folder, `${name}-${n}.ts`), code)
    }
    const compilerOptions = {
      module: 'nodenext',
      target: 'es2024',
      types: ['node'],
      strict: true,
      noEmit: true,
      skipLibCheck: true,
      allowImportingTsExtensions: true,
    }
    writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }))
    writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}')
    const compiler = path.join(ROOT, 'node_modules/.bin/tsc')
    try {
      execFileSync(compiler, ['-p', folder, '--checkers', '1'], { encoding: 'utf8' })
    } catch (error) {
      assert.fail((error as { stdout: string }).stdout)
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
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
