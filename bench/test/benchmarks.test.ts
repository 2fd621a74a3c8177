import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { BENCHMARKS } from '../src/benchmarks.ts'
import { host } from '../src/benchmarks/host.ts'
import { CHROMIUM } from '../src/load/browser.ts'
import { makePlace, ROOT } from '../src/place.ts'
import { PLANS } from '../src/plan.ts'
import { tryBenchmarks } from './try-benchmark.ts'

/** A quick run installs no packages to compare with. */
const isPossible = (name: string) => (name !== 'console' || CHROMIUM !== null) && name !== 'host'
tryBenchmarks(BENCHMARKS.filter(({ name, part }) => part !== 'postgres' && isPossible(name)))

test('host measures Tacho alone where the others cannot be had, and says so', { timeout: 300_000 }, async (t) => {
  const place = makePlace(tmpdir())
  t.after(() => rmSync(place, { recursive: true }))
  const { rows, notes, table } = await host.run({ plan: PLANS.quick, place, say: () => undefined })
  assert.equal(rows.length, 27)
  for (const { what, ours } of rows) assert.ok(ours.median > 0, `${what}: ${ours.median}`)
  assert.match(
    notes.join(' '),
    /OpenTelemetry and Langfuse were not measured in TypeScript: .* Python was not measured: /,
  )
  assert.equal(table?.length, 11)
})

test('an unknown benchmark is refused by name and measures nothing', () => {
  const args = [path.join(ROOT, 'bench/src/main.ts'), 'nonsense', '--quick']
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  assert.equal(status, 2)
  assert.equal(stdout, '')
  assert.match(stderr, /There is no benchmark nonsense/)
})
