// Runs test files one after another in this process, because loading the server takes longer than most test files. Each file
// is a test, so its `before` and `after` hooks run around its own tests only.
// If TEST_TIMES names a file, appends the processor seconds of each test file to it.
import { appendFileSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'

const timesFile = process.env.TEST_TIMES

/** @param {string[]} files relative to the root of the repository */
export function runFiles(files) {
  for (const file of files) {
    void test(file, async (t) => {
      if (timesFile !== undefined) {
        const start = processorSeconds()
        t.after(() => appendFileSync(timesFile, `${processorSeconds() - start} ${file}\n`))
      }
      await import(pathToFileURL(file).href)
    })
  }
}

/** Processor time of this process and its threads. On Linux, in steps of 10 ms, and with ended child processes. */
function processorSeconds() {
  if (process.platform !== 'linux') {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  }
  const [, fields] = readFileSync('/proc/self/stat', 'utf8').split(') ')
  const ticks = fields.split(' ').slice(11, 15).map(Number)
  return ticks.reduce((sum, one) => sum + one, 0) / 100
}
