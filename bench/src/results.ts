/** The results on the page, one line for each benchmark. They may be from different days. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { Benchmark } from './benchmark.ts'
import { OTHERS_SHOWN, pageText } from './page.ts'
import type { Measured } from './result.ts'
import { percent } from './text.ts'

export interface ResultFiles {
  results: string
  page: string
  /** The document about limits. It shows how long one request may take. */
  limits?: string
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

export function writePage({ results, page, limits, benchmarks }: ResultFiles): void {
  const found = readResults(results)
  writeFileSync(page, pageText(benchmarks, found))
  const matrix = found.get('neighbours')
  if (limits === undefined || !matrix) return
  const [before, rest = ''] = readFileSync(limits, 'utf8').split(BEGIN)
  const [, after = ''] = rest.split(END)
  writeFileSync(limits, `${before}${BEGIN}\n\n${limitsText(matrix)}\n\n${END}${after}`)
}

const [BEGIN, END] = ['<!-- npm run bench -- neighbours -->', '<!-- end of it -->']

/** Names only the kind of machine: figures differ between machines anyway. */
function limitsText({ machine, rounds, table = [] }: Measured): string {
  const kind = `${machine.cpu.split(' ', 1)[0]} processors`
  const busy =
    machine.others > OTHERS_SHOWN ? `, of which other programs used ${percent(machine.others)} meanwhile` : ''
  const times = `Milliseconds, on a machine with ${kind}${busy}; the median of ${rounds} ${rounds === 1 ? 'round' : 'rounds'}.`
  return [times, '', ...table].join('\n')
}

function readResults(file: string): Map<string, Measured> {
  if (!existsSync(file)) return new Map()
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  return new Map(lines.map((line) => JSON.parse(line) as Measured).map((measured) => [measured.name, measured]))
}
