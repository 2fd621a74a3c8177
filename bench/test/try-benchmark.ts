/** Runs a benchmark for a moment: it must measure both sides, and its figures must be on the page. */
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import type { Benchmark } from '../src/benchmark.ts'
import { BENCHMARKS } from '../src/benchmarks.ts'
import { pageText } from '../src/page.ts'
import { makePlace } from '../src/place.ts'
import { PLANS } from '../src/plan.ts'

const unmeasured = { date: '2026-01-01', commit: 'none', node: '26', cpu: '', memory: '', system: '' }
const machine = { ...unmeasured, diskWriteMs: 1, others: 0 }

export function tryBenchmarks(benchmarks: readonly Benchmark[]): void {
  // In memory: what the disk takes is no matter of a test.
  const place = makePlace(tmpdir())
  // A benchmark that is another one with more events is the same for a moment.
  const different = new Map(benchmarks.map((benchmark) => [benchmark.run, benchmark]))
  for (const benchmark of different.values()) {
    test(`${benchmark.name} measures both sides and writes them on the page`, { timeout: 300_000 }, async () => {
      const folder = path.join(place, benchmark.name)
      mkdirSync(folder)
      const result = await benchmark.run({ plan: PLANS.quick, place: folder, say: () => undefined })
      for (const { what, ours } of result.rows) assert.ok(ours.median > 0, `${what}: ${ours.median}`)
      const compared = result.rows.filter(({ ratio }) => ratio !== null)
      assert.ok(compared.length > 0)
      for (const { what, ratio } of compared) assert.ok(Number.isFinite(ratio?.median), what)

      const results = new Map([[benchmark.name, { name: benchmark.name, machine, rounds: 1, seconds: 1, ...result }]])
      const page = pageText(BENCHMARKS, results)
      assert.ok(page.includes(benchmark.title))
      for (const { what } of result.rows) assert.ok(page.includes(`| ${what} |`), what)
      assert.doesNotMatch(page, /NaN|undefined|null/)
    })
  }
}
