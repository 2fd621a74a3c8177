import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runTacho } from './tacho.ts'

/** Prints the address of each file that the program loads. */
const PRINTS_FILES = `
import { registerHooks } from 'node:module'
import { writeSync } from 'node:fs'
registerHooks({ load(url, context, next) { writeSync(2, url + '\\n'); return next(url, context) } })`

async function loadedFiles(args: readonly string[]): Promise<string[]> {
  const hooks = `data:text/javascript,${encodeURIComponent(PRINTS_FILES)}`
  const { code, stderr } = await runTacho(args, { NODE_OPTIONS: `--import=${hooks}` })
  assert.equal(code, 0, stderr)
  const files = stderr.split('\n').filter((line) => line.startsWith('file:'))
  assert.ok(files.length > 5, stderr)
  return files
}

// The schema library has hundreds of files, which took more than half of the time until a command does its work.
test('no command loads the schema library before it runs', async () => {
  const files = await loadedFiles(['--help'])
  assert.deepEqual(
    files.filter((file) => file.includes('/typebox/')),
    [],
  )
})

test('a command that reads loads few files', async () => {
  for (const command of ['runs', 'approvals', 'issues', 'keys', 'usage', 'whoami']) {
    const files = await loadedFiles([command, '--help'])
    assert.ok(files.length <= 50, `${command}: ${files.length} files`)
  }
})
