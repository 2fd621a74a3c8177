/** Keeps docs/limits.md complete and its numbers true. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { LIMITS } from '../src/engine/limits.ts'

const UNITS: Record<'bytes' | 'ms', [string, number][]> = {
  bytes: [
    ['MiB', 1_048_576],
    ['KiB', 1_024],
  ],
  ms: [
    ['day', 86_400_000],
    ['hour', 3_600_000],
    ['minute', 60_000],
    ['second', 1_000],
  ],
}

function spoken(name: string, value: number): string {
  if (name === 'detectedAtMaxMs') return 'year 9999'
  const units = name.endsWith('Bytes') ? UNITS.bytes : /Ms(Min|Max|Default)?$/.test(name) ? UNITS.ms : []
  const [unit = '', size = 1] = units.find(([, length]) => value % length === 0) ?? []
  const count = value / size
  const plural = units === UNITS.ms && count !== 1 ? 's' : ''
  return `${count.toLocaleString('en')} ${unit}${plural}`.trim()
}

test('the page of limits has every limit with its number', () => {
  const page = readFileSync(new URL('../../../docs/limits.md', import.meta.url), 'utf8')
  const rows = new Map([...page.matchAll(/\| ([^|]+) \| `(\w+)` \|/g)].map(([, limit, name = '']) => [name, limit]))
  const wanted = new Map(Object.entries(LIMITS).map(([name, value]) => [name, spoken(name, value)]))
  assert.deepEqual(Object.fromEntries(rows), Object.fromEntries(wanted))
})
