/** The Python SDK: its own checks and tests, and the client rules. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { API_KEY, OPERATOR_TOKEN, startServer, type TestServer } from '../../cli/test/tacho.ts'
import { startAdapter, type Adapter } from '../src/adapter.ts'
import { RULES, runRule } from '../src/suite.ts'
import {
  crewaiInterpreter,
  interpreter,
  programsInterpreter,
  PYTHON_SDK,
  wheels,
  withoutCrewai,
  withoutPrograms,
  withoutPython,
} from './python.ts'

const run = promisify(execFile)
const TESTS_MS = 1_200_000
const INTEGRATIONS = 'tests/integrations'

/** Runs a program. If it fails, the error has the end of its output. */
async function runPython(
  args: readonly string[],
  variables: Record<string, string> = {},
  program = interpreter,
): Promise<void> {
  // No pytest plugins: those of frameworks would load the frameworks into every test.
  const own = { PYTHONPATH: path.join(PYTHON_SDK, 'src'), PYTEST_DISABLE_PLUGIN_AUTOLOAD: '1' }
  const env = { ...process.env, ...own, ...variables }
  try {
    await run(program, args, { cwd: PYTHON_SDK, env, maxBuffer: 16 * 1_048_576 })
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string }
    assert.fail(`${stdout}\n${stderr}`.slice(-6_000))
  }
}

/** Code that fragments need. */
const PRELUDE = 'import tacho_sdk as tacho\n\nrun = tacho.start_run()\n'

/** Writes each block of each page to a file, and all fragments of the guide to recording to one file. */
function writeBlocks(folder: string): string[] {
  mkdirSync(folder)
  const root = path.join(PYTHON_SDK, '../..')
  const pages = globSync(['README.md', 'docs/**/*.md', 'sdks/python/README.md'], { cwd: root })
  return pages.flatMap((page) => {
    const text = readFileSync(path.join(root, page), 'utf8')
    const blocks = Array.from(text.matchAll(/^```python\n(.*?)^```$/gms), ([, code = '']) => code)
    const programs = page === 'docs/recording.md' ? [PRELUDE + blocks.join('')] : blocks
    return programs.map((code, at) => {
      const name = `${page.replace(/\.md$/, '').replaceAll(/\W/g, '_')}_${at + 1}.py`
      writeFileSync(path.join(folder, name), code)
      writeFileSync(path.join(folder, '__init__.py'), '')
      return path.join(folder, name)
    })
  })
}

describe('the Python SDK', { skip: withoutPython }, () => {
  const cache = path.join(PYTHON_SDK, '../../.cache')

  test('its code, and that of the pages, is checked, formatted and typed', { timeout: TESTS_MS }, async (t) => {
    const ruff = ['--cache-dir', path.join(cache, 'ruff'), '.']
    await runPython(['-m', 'ruff', 'check', '--quiet', ...ruff])
    await runPython(['-m', 'ruff', 'format', '--check', ...ruff])
    // Check the code of the pages too, as a separate module. Only there, functions may be untyped, because they are the user's.
    const folder = mkdtempSync(path.join(tmpdir(), 'tacho-pages-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const blocks = writeBlocks(path.join(folder, 'page_blocks'))
    await runPython(['-m', 'mypy', '--cache-dir', path.join(cache, 'mypy'), 'src', 'tests', ...blocks])
  })
})

test('the Python SDK records and guards the real CrewAI', { skip: withoutCrewai, timeout: TESTS_MS }, () =>
  runPython(['-m', 'pytest', INTEGRATIONS, '-k', 'crewai'], {}, crewaiInterpreter),
)

test('real programs record and guard with the Python SDK', { skip: withoutPrograms, timeout: TESTS_MS }, () =>
  runPython(['-m', 'pytest', 'tests/test_real_programs.py'], {}, programsInterpreter),
)

// Run both groups at once, because their tests often wait. The tests of the integrations load every framework.
describe('the tests of the Python SDK pass, with a real service', { skip: withoutPython, concurrency: 2 }, () => {
  let server: TestServer
  before(async () => {
    server = await startServer()
  })
  after(() => server.stop())

  for (const [part, which] of [
    ['integrations', INTEGRATIONS],
    ['all others', `--ignore=${INTEGRATIONS}`],
  ] as const) {
    test(`pytest: ${part}`, { timeout: TESTS_MS }, () =>
      runPython(['-m', 'pytest', which], {
        TACHO_TEST_WHEELS: wheels,
        TACHO_TEST_URL: server.url,
        TACHO_TEST_KEY: API_KEY,
        TACHO_TEST_OPERATOR_TOKEN: OPERATOR_TOKEN,
      }),
    )
  }
})

// Rules run at the same time, because most of them wait for a timer.
describe('the Python SDK keeps the client rules', { skip: withoutPython, concurrency: 8 }, () => {
  let adapter: Adapter
  before(() => {
    process.env['PYTHONPATH'] = path.join(PYTHON_SDK, 'src')
    adapter = startAdapter([interpreter, path.join(PYTHON_SDK, 'tests', 'conformance_adapter.py')])
  })
  after(() => adapter.stop())
  for (const rule of RULES) {
    test(`${rule.id}: ${rule.title}`, async () => {
      assert.deepEqual(await runRule(rule, adapter), { ok: true })
    })
  }
})
