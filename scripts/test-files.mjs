// Runs test files one after another in this process, each as a test of its name: its hooks run before and after its own
// tests. Loading the server takes longer than most files of its tests.
// With TEST_TIMES=<file>, adds to it the processor seconds of each test file.
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

/** Processor time of this process with its threads; on Linux also of its child processes that have ended, in steps of 10 ms. */
function processorSeconds() {
  if (process.platform !== 'linux') {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  }
  const [, fields] = readFileSync('/proc/self/stat', 'utf8').split(') ')
  const ticks = fields.split(' ').slice(11, 15).map(Number)
  return ticks.reduce((sum, one) => sum + one, 0) / 100
}
