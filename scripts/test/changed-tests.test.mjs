import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'

const MODULE = new URL('../changed-tests.mjs', import.meta.url).href
const FILES = {
  'packages/a/src/rule.ts': 'export const rule = 1\n',
  'packages/a/src/thread.ts': "import { rule } from './rule.ts'\nconsole.log(rule)\n",
  'packages/a/src/start.ts': "new Worker(moduleUrl('thread', import.meta.url))\n",
  'packages/a/test/start.test.ts': "import '../src/start.ts'\n",
  'packages/a/test/alone.test.ts': 'export {}\n',
  'packages/b/test/other.test.ts': "const { rule } = await import('@tacho/a/rule.ts')\n",
}

test('a change reaches the tests that import it, through threads and packages, and no others', (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'tacho-changed-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const write = (name, text) => {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
    writeFileSync(path.join(folder, name), text)
  }
  const git = (...args) => execFileSync('git', ['-c', 'user.name=x', '-c', 'user.email=x@y', ...args], { cwd: folder })
  const tests = Object.keys(FILES).filter((name) => name.endsWith('.test.ts'))
  const found = () => {
    const program = `import { changedTests } from ${JSON.stringify(MODULE)}
console.log(JSON.stringify(changedTests(${JSON.stringify(tests)})))`
    return JSON.parse(execFileSync(process.execPath, ['--input-type=module', '-e', program], { cwd: folder }))
  }
  for (const [name, text] of Object.entries(FILES)) write(name, text)
  git('init', '-q')
  git('add', '-A')
  git('commit', '-qm', 'all')
  assert.deepEqual(found(), [])
  write('packages/a/src/rule.ts', 'export const rule = 2\n')
  assert.deepEqual(found(), ['packages/a/test/start.test.ts', 'packages/b/test/other.test.ts'])
  git('checkout', '-q', '.')
  write('packages/a/test/alone.test.ts', 'export const changed = 1\n')
  assert.deepEqual(found(), ['packages/a/test/alone.test.ts'])
})
