/** The results the page is made of, one line for each benchmark. They may be from different days. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { Benchmark } from './benchmark.ts'
import { OTHERS_SHOWN, pageText } from './page.ts'
import type { Measured } from './result.ts'

export interface ResultFiles {
  results: string
  page: string
  /** All benchmarks, in the order of the page. */
  benchmarks: readonly Benchmark[]
}

/**
 * Replaces the result of a benchmark and writes the page. Returns false and writes nothing if other programs used too much
 * of the machine, unless `anyway` is set; then the page marks the figures.
 */
export function saveResult(files: ResultFiles, measured: Measured, anyway: boolean): boolean {
  if (measured.machine.others > OTHERS_SHOWN && !anyway) return false
  const results = readResults(files.results).set(measured.name, measured)
  const kept = files.benchmarks.flatMap(({ name }) => results.get(name) ?? [])
  writeFileSync(files.results, kept.map((each) => `${JSON.stringify(each)}\n`).join(''))
  writePage(files)
  return true
}

export function writePage({ results, page, benchmarks }: ResultFiles): void {
  writeFileSync(page, pageText(benchmarks, readResults(results)))
}

function readResults(file: string): Map<string, Measured> {
  if (!existsSync(file)) return new Map()
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  return new Map(lines.map((line) => JSON.parse(line) as Measured).map((measured) => [measured.name, measured]))
}
