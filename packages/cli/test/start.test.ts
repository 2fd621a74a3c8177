import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { firstLogLevel } from '../src/web/serve.ts'
import { ended, startTacho } from './tacho.ts'

const NODE = fileURLToPath(new URL('../../../scripts/node', import.meta.url))
// The sources, because their names show what was loaded. The build is split in the same way.
const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url))

/** Prints the address of each file that the program loads. */
const PRINTS_FILES = `
import { registerHooks } from 'node:module'
import { writeSync } from 'node:fs'
registerHooks({ load(url, context, next) { writeSync(2, url + '\\n'); return next(url, context) } })`

async function loadedFiles(args: readonly string[], more = ''): Promise<string[]> {
  const hooks = `data:text/javascript,${encodeURIComponent(PRINTS_FILES)}`
  const child = startTacho([MAIN, ...args], { NODE_OPTIONS: `--import=${hooks} ${more}` }, undefined, NODE)
  const { code, stderr } = await ended(child)
  assert.equal(code, 0, stderr)
  const files = stderr.split('\n').filter((line) => line.startsWith('file:'))
  assert.ok(files.length > 5, stderr)
  return files
}

test('the list of commands loads no command', async () => {
  for (const args of [['--help'], ['help']]) {
    const files = await loadedFiles(args)
    assert.deepEqual(
      files.flatMap((file) => file.split('/cli/src/').slice(1)).toSorted(),
      // `stop.ts` and `text-width.ts` fit the help to the terminal.
      ['engine/help.ts', 'engine/stop.ts', 'engine/text-width.ts', 'main.ts'],
    )
  }
})

// The schema library has hundreds of files, which took more than half of the time until a command does its work.
test('no command loads the schema library before it runs', async () => {
  const main = readFileSync(new URL('../src/main.ts', import.meta.url), 'utf8')
  const commands = [...main.matchAll(/import\('\.\/([^']+)'\)/g)].map(([, name = '']) => name)
  // Before they run, commands load only their own files. So one process can load them all for this test.
  const imports = commands.map((name) => `import ${JSON.stringify(new URL(`../src/${name}`, import.meta.url))}`)
  const program = `data:text/javascript,${encodeURIComponent(imports.join('\n'))}`
  const files = await loadedFiles(['--version'], `--import=${program}`)
  for (const name of commands)
    assert.ok(
      files.some((file) => file.endsWith(`/cli/src/${name}`)),
      name,
    )
  assert.deepEqual(
    files.filter((file) => file.includes('/typebox/')),
    [],
  )
})

test('a command that reads loads few files, and so does its help', async () => {
  const commands = {
    runs: 'runs/runs',
    approvals: 'approvals/approvals',
    issues: 'issues/issues',
    keys: 'tenants/keys',
    usage: 'runs/usage',
    whoami: 'people/login',
  }
  for (const [command, file] of Object.entries(commands)) {
    for (const args of [
      [command, '--help'],
      ['help', command],
    ]) {
      const files = await loadedFiles(args)
      assert.ok(files.some((loaded) => loaded.endsWith(`/cli/src/${file}.ts`)))
      assert.ok(files.length <= 50, `${args.join(' ')}: ${files.length} files`)
    }
  }
})

test('on a terminal, the server logs warnings only, unless a variable says otherwise', () => {
  assert.equal(firstLogLevel(true, {}), 'warn')
  assert.equal(firstLogLevel(true, { TACHO_LOG_LEVEL: 'info' }), undefined)
  assert.equal(firstLogLevel(false, {}), undefined)
})
