// npm test              the checks, then every test
// npm test -- events    only the test files whose path contains "events", without the checks
// npm test -- --changed only the test files that the changes since the upstream branch reach by imports
// npm run check         only the checks; with names, such as -- types format, only these
// Options for the tests: --name <pattern> (can be repeated), --watch, --coverage
// --slowest             also lists the test files that took most processor time
// The last line is always `N passed, N failed`; a check counts as one test.
import { execFile, spawnSync } from 'node:child_process'
import { chmodSync, globSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import path from 'node:path'
import { run } from 'node:test'
import { dot, spec } from 'node:test/reporters'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { changedTests } from './changed-tests.mjs'
import { countTests } from './test-count.mjs'
import { groupFiles, RUN_FOLDER } from './test-groups.mjs'

process.chdir(fileURLToPath(new URL('..', import.meta.url)))
const { values: options, positionals: filters } = parseArgs({
  allowPositionals: true,
  options: {
    checks: { type: 'boolean' },
    name: { type: 'string', multiple: true, default: [] },
    watch: { type: 'boolean', default: false },
    coverage: { type: 'boolean', default: false },
    slowest: { type: 'boolean', default: false },
    changed: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
})
if (options.help) {
  const head = readFileSync('scripts/test.mjs', 'utf8').split('import ', 1)[0]
  console.log(head.replaceAll(/^\/\/ /gm, '').trim())
  process.exit()
}
const count = { passed: 0, failed: 0 }

if (options.checks || (filters.length === 0 && !options.changed)) await runChecks()
if (!options.checks) await runTests()

console.log(`${count.passed} passed, ${count.failed} failed`)
process.exitCode = count.failed > 0 ? 1 : 0

/** Runs all checks, or those that are named, together, as many commands at a time as there are cores. */
async function runChecks() {
  const bin = 'node_modules/.bin'
  const inTurn = createTurns(availableParallelism())
  const projects = ['tsconfig.json', ...globSync('packages/**/tsconfig.json', { exclude: ['**/node_modules'] })]
  const types = projects.map((project) => [
    `${bin}/tsc`,
    '-p',
    project,
    // One, because each checker computes the same types again: several take twice the processor time.
    '--checkers',
    '1',
    // The next run then checks only what changed.
    '--incremental',
    '--tsBuildInfoFile',
    `.cache/types/${project.replaceAll('/', '-')}.tsbuildinfo`,
  ])
  // Longest first.
  const checks = [
    ['lint', [`${bin}/oxlint`]],
    ['types', ...types],
    ['format', [`${bin}/oxfmt`, '--check']],
    ['imports', ['scripts/check-imports.mjs']],
    ['prose', ['scripts/check-prose.mjs']],
    ['names', ['scripts/check-names.mjs']],
    ['versions', ['scripts/check-versions.mjs']],
    ['migrations', ['scripts/check-migrations.mjs']],
    ['upgrades', ['scripts/check-upgrades.mjs']],
    ['lockfile', ['scripts/lock.mjs', '--check']],
  ]
  const unknown = filters.filter((filter) => !checks.some(([name]) => name === filter))
  if (unknown.length > 0) {
    console.error(`No check is named ${unknown.join(', ')}: they are ${checks.map(([name]) => name).join(', ')}.`)
    count.failed++
    return
  }
  const chosen = checks.filter(([name]) => filters.length === 0 || filters.includes(name))
  await Promise.all(chosen.map(([name, ...commands]) => check(inTurn, name, ...commands)))
}

/** Runs functions in order, at most `count` at a time. */
function createTurns(count) {
  let free = count
  const waiting = []
  return async (work) => {
    if (free > 0) free--
    else await new Promise((resolve) => waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else free++
    }
  }
}

/** Runs the commands of one check. Prints their output together, and one line with the result. */
async function check(inTurn, name, ...commands) {
  const start = performance.now()
  const found = []
  const runCommand = (command) =>
    promisify(execFile)(process.execPath, command, { maxBuffer: 2 ** 30 }).catch(({ stdout, stderr }) => {
      found.push(stdout, stderr)
    })
  await Promise.all(commands.map((command) => inTurn(() => runCommand(command))))
  const isFailed = found.length > 0
  process.stdout.write(found.join(''))
  console.log(`${isFailed ? '✖' : '✔'} ${name} (${Math.round(performance.now() - start)}ms)`)
  count[isFailed ? 'failed' : 'passed']++
}

async function runTests() {
  useMemoryDisk()
  const all = globSync(['{packages/*,bench}/test/**/*.test.ts', 'scripts/test/*.test.mjs'])
  const files = (options.changed ? changedTests(all) : all)
    .filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)))
    .sort()
  if (files.length === 0) {
    console.error('No test file matches.')
    count.failed++
    return
  }
  // Tests that start a process use this build, as users do. If it fails, they use the sources.
  const { builtModules, tryToBuild } = await import('./build-program.mjs')
  await tryToBuild()
  // --coverage and --watch need the sources, not the build.
  if (!options.watch && !options.coverage) process.env.TEST_MODULES = JSON.stringify(builtModules())
  const database = await sharedServer(files)
  await installBrowser(files)
  await installPython(files)
  // Two more than the cores, because files often wait for a browser, a server or a timeout. One more would be a fifth slower.
  const concurrency = availableParallelism() + 2
  // With --name, files cannot share: in a shared process each file is a test itself, and the name would have to match it too.
  const isShared = options.name.length === 0 && !options.watch && !options.coverage
  const groups = isShared ? groupFiles(files, concurrency) : files.map((file) => ({ program: file, files: [file] }))
  const times = options.slowest && isShared ? path.resolve(RUN_FOLDER, 'times') : null
  if (times) process.env.TEST_TIMES = times
  // Read by packages/server/test/setup/migrated-store.ts. Not with --watch: migrations can change during such a run.
  if (isShared) process.env.TEST_STORE = path.resolve(RUN_FOLDER, 'store.db')
  // Read by packages/sdk/test/packed-sdk.ts.
  if (isShared) process.env.TEST_PACKAGE = path.resolve(RUN_FOLDER, 'package')
  const tests = run({
    files: groups.map(({ program }) => program),
    concurrency,
    isolation: 'process',
    testNamePatterns: options.name,
    watch: options.watch,
    coverage: options.coverage,
    // In a shared process, the timeout applies to a whole file, which may take minutes on a machine ten times slower.
    execArgv: [
      '--test-timeout=900000',
      '--import=./scripts/test-scope.mjs',
      '--import=./scripts/test-end.mjs',
      '--import=./scripts/test-threads.mjs',
    ],
  })
  const counted = countTests(tests, count, groups, { byName: options.name.length > 0 })
  const reporter = process.env.CI ? dot : new spec()
  const output = tests.compose(reporter)
  output.pipe(process.stdout, { end: false })
  await once(output, 'end')
  for (const file of counted.finish()) console.log(`✖ ${file} did not run to its end, or has no test`)
  if (times) printSlowest(times)
  await database?.close()
}

/** Sorts by processor time. Wall time depends on the files that run at the same time. */
function printSlowest(timesFile) {
  const lines = readFileSync(timesFile, 'utf8').trim().split('\n')
  const times = lines.map((line) => line.split(' ')).map(([seconds, file]) => ({ seconds: Number(seconds), file }))
  const all = times.reduce((sum, { seconds }) => sum + seconds, 0)
  for (const { file, seconds } of times.sort((a, b) => b.seconds - a.seconds).slice(0, 30)) {
    console.log(`${seconds.toFixed(1).padStart(7)} s  ${file}`)
  }
  console.log(`${all.toFixed(1).padStart(7)} s  in all, without the shared PostgreSQL`)
}

/**
 * Puts temporary files into memory if it has room and can run programs: syncing the tests' stores to a disk after each commit
 * took a third of the processor time. `TMPDIR` chooses another place.
 */
function useMemoryDisk() {
  if (process.env.TMPDIR !== undefined) return
  try {
    const { bavail, bsize } = statfsSync('/dev/shm')
    if (bavail * bsize < 4 * 2 ** 30) return
    const folder = mkdtempSync('/dev/shm/tacho-test-')
    process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))
    // PostgreSQL runs as another user, who needs access.
    chmodSync(folder, 0o755)
    const program = path.join(folder, 'program')
    writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 })
    if (spawnSync(program).status === 0) process.env.TMPDIR = folder
  } catch {
    // /dev/shm does not exist, or this user may not write to it.
  }
}

/** Installs Chromium and builds the console before the tests, because several files that need both can run at the same time. */
async function installBrowser(files) {
  if (!files.some((file) => readFileSync(file, 'utf8').includes('withoutChromium'))) return
  // Not imported above: the checks must run even if this file does not parse.
  const { installChromium } = await import('../packages/console/test/setup/chromium.ts')
  installChromium()
  // Two builds at the same time would replace each other's files under a page that loads them.
  await import('./build-console.mjs')
}

/** Installs the packages of the Python tests before the tests, for the same reason. */
async function installPython(files) {
  if (!files.some((file) => readFileSync(file, 'utf8').match(/without(Python|Programs|Schemathesis)/))) return
  const python = await import('../packages/sdk-conformance/test/python.ts')
  python.installPython()
}

/** Starting a PostgreSQL takes a second, so all files share one. Each creates its own databases. */
async function sharedServer(files) {
  const needs = files.filter((file) => /estDatabases?\(|startOnBothEngines\(/.test(readFileSync(file, 'utf8')))
  if (needs.length < 2 || process.env.TACHO_TEST_DATABASE_URL) return null
  // Not imported above: the checks must run even if this file does not parse.
  const { SHARED_SERVER, startPostgres } = await import('../packages/server/test/setup/postgres-server.ts')
  const server = await startPostgres()
  process.env[SHARED_SERVER] = server.url()
  return server
}
