import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { test } from 'node:test'
import { BENCHMARKS } from '../src/benchmarks.ts'
import { CHROMIUM } from '../src/load/browser.ts'
import { ROOT } from '../src/place.ts'
import { tryBenchmarks } from './try-benchmark.ts'

const isPossible = (name: string) => name !== 'console' || CHROMIUM !== null
tryBenchmarks(BENCHMARKS.filter(({ name, part }) => part !== 'postgres' && isPossible(name)))

test('an unknown benchmark is refused by name and measures nothing', () => {
  const args = [path.join(ROOT, 'bench/src/main.ts'), 'nonsense', '--quick']
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  assert.equal(status, 2)
  assert.equal(stdout, '')
  assert.match(stderr, /There is no benchmark nonsense/)
})
