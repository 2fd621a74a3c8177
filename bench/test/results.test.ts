import assert from 'node:assert/strict'
import { readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { BENCHMARKS } from '../src/benchmarks.ts'
import { makePlace } from '../src/place.ts'
import { atLeast, row, type Measured } from '../src/result.ts'
import { saveResult } from '../src/results.ts'

const MACHINE = {
  date: '2026-01-01',
  commit: 'c',
  node: '26',
  cpu: 'cpu',
  memory: '1 GiB',
  system: 's',
  diskWriteMs: 1,
}

function measured(others: number, rate = 1): Measured {
  const rows = [row('events', '/s', [rate], [rate * 2], atLeast(10))]
  return { name: 'ingest', machine: { ...MACHINE, others }, rounds: 1, seconds: 1, rows, notes: [] }
}

function files(t: TestContext) {
  const place = makePlace()
  t.after(() => rmSync(place, { recursive: true }))
  const found = {
    results: path.join(place, 'results.jsonl'),
    page: path.join(place, 'page.md'),
    benchmarks: BENCHMARKS,
  }
  const texts = () => [found.results, found.page].map((file) => readFileSync(file, 'utf8'))
  return { found, texts }
}

test('a result is written while other programs use a tenth of the machine, and refused above', (t) => {
  const { found, texts } = files(t)
  assert.equal(saveResult(found, measured(0.1, 7), false), true)
  const before = texts()
  assert.match(before[1] ?? '', /at least 10\/s \| 7\.00\/s \| missed \|/)
  assert.equal(saveResult(found, measured(0.101, 8), false), false)
  assert.deepEqual(texts(), before)
})

test('a refused result can be written anyway; the page then marks its figures', (t) => {
  const { found, texts } = files(t)
  assert.equal(saveResult(found, measured(0.56, 8), true), true)
  const [, page = ''] = texts()
  assert.match(page, /at least 10\/s \| 8\.00\/s; other programs used 56 % of the machine \| missed \|/)
  assert.match(page, /\*\*Other programs used 56 % of the machine\.\*\*/)
  assert.equal(saveResult(found, measured(0, 9), false), true)
  assert.doesNotMatch(texts()[1] ?? '', /Other programs used/)
})
