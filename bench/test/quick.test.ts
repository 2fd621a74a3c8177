import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { BENCHMARKS } from '../src/benchmarks.ts'
import { pageText } from '../src/page.ts'
import { makePlace, ROOT } from '../src/place.ts'
import { PLANS } from '../src/plan.ts'

/** One for each kind of load; the others take the same ways. */
const TRIED = ['ingest', 'runtime-config', 'policies', 'sdk']

const place = makePlace()
const unmeasured = { date: '2026-01-01', commit: 'none', node: '26', cpu: '', memory: '', system: '' }
const machine = { ...unmeasured, diskWriteMs: 1, others: 0 }

for (const benchmark of BENCHMARKS.filter(({ name }) => TRIED.includes(name))) {
  test(`${benchmark.name} measures both sides and writes them on the page`, async () => {
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

test('an unknown benchmark is refused by name, and nothing is measured', () => {
  const args = [path.join(ROOT, 'bench/src/main.ts'), 'nonsense', '--quick']
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  assert.equal(status, 2)
  assert.equal(stdout, '')
  assert.match(stderr, /There is no benchmark nonsense/)
})
