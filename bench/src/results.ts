/** Results that were measured on different days, one line for each benchmark: what the page is made of. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { Machine } from './machine.ts'
import type { Result } from './result.ts'

export interface Measured extends Result {
  name: string
  machine: Machine
  rounds: number
  seconds: number
}

export function readResults(file: string): Map<string, Measured> {
  if (!existsSync(file)) return new Map()
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  return new Map(lines.map((line) => JSON.parse(line) as Measured).map((measured) => [measured.name, measured]))
}

/** Puts one in, in the order of `names`; those of benchmarks that are no more are left out. */
export function saveResult(file: string, measured: Measured, names: readonly string[]): Map<string, Measured> {
  const results = readResults(file).set(measured.name, measured)
  const kept = names.flatMap((name) => results.get(name) ?? [])
  writeFileSync(file, kept.map((each) => `${JSON.stringify(each)}\n`).join(''))
  return results
}
