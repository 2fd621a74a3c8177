// A run must count each broken file as failed, however its process ends, and whether it shares the process or not.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'

const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-count-'))
after(() => rmSync(directory, { recursive: true }))

const GOOD = `test('one', () => {}); test('two', (t) => t.test('part', () => {})); test('later', { skip: true }, () => {})`
const SKIPPED = `import { describe } from 'node:test'; describe('none', { skip: 'elsewhere' }, () => { test('x', () => {}) })`
const FAULTS = {
  'a failed test': `test('fails', () => { throw new Error('no') })`,
  'an error at loading': `throw new Error('no')`,
  'no test': ``,
  'an exit with 1': `test('exits', () => process.exit(1))`,
  'an exit with 0': `test('ok', () => {}); test('exits', () => process.exit(0))`,
  'a kill': `test('is killed', async () => { process.kill(process.pid, 'SIGKILL'); await new Promise(() => {}) })`,
  'a failed hook': `after(() => { throw new Error('no') }); test('ok', () => {})`,
  'an error after the last test': `after(() => { setTimeout(() => { throw new Error('no') }, 50) }); test('ok', () => {})`,
  'an exit after the last test': `after(() => { setTimeout(() => process.exit(1), 50) }); test('ok', () => {})`,
}

const single = (name, text) => {
  const file = write(name, text)
  return { program: file, files: [file] }
}
const all = (...groups) => ({ groups, names: [] })
const scenarios = {
  'a skipped suite': all(
    single('suite', SKIPPED),
    together(write('before-suite', GOOD), write('grouped-suite', SKIPPED)),
  ),
  good: all(single('alone', GOOD), together(write('first', GOOD), write('second', GOOD))),
  'by name': { groups: [single('named', GOOD), single('none', GOOD.replaceAll('one', 'other'))], names: ['one'] },
  'a kill, by name': { groups: [single('killed', FAULTS['a kill'])], names: ['is killed'] },
  ...Object.fromEntries(
    Object.entries(FAULTS).flatMap(([fault, text]) => {
      const one = single(fault.replaceAll(' ', '-'), text)
      const group = together(write(`${fault}-before`, GOOD), one.program, write(`${fault}-after`, GOOD))
      return [
        [`${fault}, alone`, all(one)],
        [`${fault}, among others`, all(group)],
      ]
    }),
  ),
}
const results = countAll()

test('passed tests are counted once, skipped ones and the file itself not', () => {
  assert.deepEqual(results.good, { passed: 9, failed: 0, unfinished: [] })
})

test('a file whose only suite is skipped has not failed', () => {
  assert.deepEqual(results['a skipped suite'], { passed: 3, failed: 0, unfinished: [] })
})

test('in a run of tests of some names, a file without any has not failed, but a killed one has', () => {
  assert.deepEqual(results['by name'], { passed: 1, failed: 0, unfinished: [] })
  assert.ok(results['a kill, by name'].failed > 0)
})

for (const fault of Object.keys(FAULTS)) {
  test(`${fault} is counted as failed, alone and among others`, () => {
    assert.ok(results[`${fault}, alone`].failed > 0)
    assert.ok(results[`${fault}, among others`].failed > 0)
  })
}

test('one failed test is counted once', () => {
  assert.deepEqual(results['a failed test, among others'], { passed: 6, failed: 1, unfinished: [] })
})

test('files that a killed process did not finish are named', () => {
  const names = results['a kill, among others'].unfinished.map((file) => path.basename(file, '.test.mjs'))
  assert.deepEqual(names.slice(-2), ['a-kill', 'a kill-after'])
})

function write(name, text) {
  const file = path.join(directory, `${name}.test.mjs`)
  writeFileSync(file, `import { after, test } from 'node:test'\n${text}\n`)
  return path.relative('.', file)
}

function together(...files) {
  const run = path.resolve(import.meta.dirname, '../test-files.mjs')
  const program = write(`run ${path.basename(files[0])}`, '')
  writeFileSync(program, `import { runFiles } from ${JSON.stringify(run)}\nrunFiles(${JSON.stringify(files)})\n`)
  return { program, files }
}

/** Runs the scenarios in a process outside of this test run, because Node's test runner does nothing inside another run. */
function countAll() {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const child = spawnSync(process.execPath, [path.join(import.meta.dirname, 'count-runs.mjs')], {
    env,
    input: JSON.stringify(scenarios),
    encoding: 'utf8',
  })
  return JSON.parse(child.stdout)
}
