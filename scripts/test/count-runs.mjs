// Runs each scenario from its input with Node's test runner, and prints the counts.
import { once } from 'node:events'
import { run } from 'node:test'
import { json } from 'node:stream/consumers'
import { countTests } from '../test-count.mjs'

const results = {}
for (const [name, { groups, names }] of Object.entries(await json(process.stdin))) {
  const count = { passed: 0, failed: 0 }
  const tests = run({
    files: groups.map(({ program }) => program),
    concurrency: 2,
    isolation: 'process',
    // As scripts/test.mjs does.
    execArgv: [`--import=${new URL('../test-scope.mjs', import.meta.url).href}`],
    testNamePatterns: names,
  })
  const counted = countTests(tests, count, groups, { byName: names.length > 0 })
  tests.resume()
  await once(tests, 'end')
  const unfinished = counted.finish()
  results[name] = { ...count, unfinished }
}
console.log(JSON.stringify(results))
