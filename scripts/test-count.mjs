// Counts the tests of a run from the reports of its processes. A file counts as failed unless it reports a test and runs to its
// end, because a process that is killed or exits early reports no failure. With --name, a file may have no matching test.
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const FILES_PROGRAM = fileURLToPath(new URL('test-files.mjs', import.meta.url))

/**
 * @param {import('node:test').TestsStream} tests
 * @param {{ passed: number, failed: number }} count to add to
 * @param {{ program: string, files: string[] }[]} groups
 * @param {{ byName?: boolean }} [options] `byName`: the run has --name, so only some tests run
 * @returns {{ finish(): string[] }} `finish` counts the files that did not run to their end as failed, and returns them
 */
export function countTests(tests, count, groups, { byName = false } = {}) {
  const unfinished = new Set(groups.flatMap(({ files }) => files))
  // Tests of the current file. One number is enough, because the reports of a process arrive together.
  let tested = 0

  tests.on('test:pass', (report) => add(report, 'passed'))
  tests.on('test:fail', (report) => add(report, 'failed'))
  tests.on('test:summary', ({ file }) => file !== undefined && end(path.relative('.', file)))

  function add({ name, file, nesting, skip, todo, details }, outcome) {
    // A skipped suite counts like a test, because it may be all that a file has.
    if (details.type === 'suite') return void (tested += skip === undefined ? 0 : 1)
    if (file === FILES_PROGRAM) {
      end(name)
      // An error outside the file's tests. Failed tests are counted already.
      if (details.error && details.error.failureType !== 'subtestsFailed') count.failed++
    } else if (nesting === 0 && path.resolve(name) === file) {
      // This report is about a whole process. It failed outside its tests.
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
