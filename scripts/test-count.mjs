// Counts the tests that the processes of a run report. A file counts as failed unless it reports a test and comes to its end:
// a process that is killed or exits early reports nothing by itself. In a run of tests of some names, a file may have none.
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const FILES_PROGRAM = fileURLToPath(new URL('test-files.mjs', import.meta.url))

/**
 * @param {import('node:test').TestsStream} tests
 * @param {{ passed: number, failed: number }} count to add to
 * @param {{ program: string, files: string[] }[]} groups
 * @param {{ byName?: boolean }} [options] `byName`: only tests of some names run
 * @returns {{ finish(): string[] }} `finish` counts the files that did not come to their end, and returns them
 */
export function countTests(tests, count, groups, { byName = false } = {}) {
  const unfinished = new Set(groups.flatMap(({ files }) => files))
  // The reports of a process arrive together, so these are tests of one file.
  let tested = 0

  tests.on('test:pass', (report) => add(report, 'passed'))
  tests.on('test:fail', (report) => add(report, 'failed'))
  tests.on('test:summary', ({ file }) => file !== undefined && end(path.relative('.', file)))

  function add({ name, file, nesting, skip, todo, details }, outcome) {
    // A file whose only suite is skipped has come to its end too.
    if (details.type === 'suite') return void (tested += skip === undefined ? 0 : 1)
    if (file === FILES_PROGRAM) {
      end(name)
      // Its failed tests have been counted.
      if (details.error && details.error.failureType !== 'subtestsFailed') count.failed++
    } else if (nesting === 0 && path.resolve(name) === file) {
      // Not a test but a process, which has failed otherwise.
      if (outcome === 'failed') count.failed++
    } else {
      tested++
      if (skip === undefined && todo === undefined) count[outcome]++
    }
  }

  function end(file) {
    if (tested > 0 || byName) unfinished.delete(file)
    tested = 0
  }

  function finish() {
    count.failed += unfinished.size
    return [...unfinished]
  }
  return { finish }
}
