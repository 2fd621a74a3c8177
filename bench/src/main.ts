/**
 * npm run bench                    all benchmarks; writes docs/benchmarks.md
 * npm run bench -- ingest config   only these; replaces their part of the page
 * npm run bench -- --quick         a moment each, to see that they run; writes nothing
 * npm run bench -- --full          the ones with ten million events, which take long
 * npm run bench -- --list          their names
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import type { Benchmark } from './benchmark.ts'
import { BENCHMARKS } from './benchmarks.ts'
import { describeMachine, watchOthers } from './machine.ts'
import { OTHERS_SHOWN, pageText } from './page.ts'
import { makePlace, ROOT } from './place.ts'
import { PLANS } from './plan.ts'
import { resultLines } from './report.ts'
import { saveResult, type Measured } from './results.ts'
import { percent } from './text.ts'

const RESULTS = path.join(ROOT, 'bench/results.jsonl')
const PAGE = path.join(ROOT, 'docs/benchmarks.md')

const { values: flags, positionals: names } = readArguments()
if (flags.list) {
  for (const { name, title } of BENCHMARKS) console.log(`${name.padEnd(18)}${title}`)
} else {
  await measure(chosen())
}

function readArguments() {
  const boolean = { type: 'boolean', default: false } as const
  try {
    return parseArgs({ allowPositionals: true, options: { quick: boolean, full: boolean, list: boolean } })
  } catch (error) {
    return stop((error as Error).message)
  }
}

function chosen(): Benchmark[] {
  const unknown = names.filter((name) => !BENCHMARKS.some((benchmark) => benchmark.name === name))
  if (unknown.length > 0) stop(`There is no benchmark ${unknown.join(', ')}; --list tells their names.`)
  if (names.length > 0) return BENCHMARKS.filter(({ name }) => names.includes(name))
  return BENCHMARKS.filter(({ onDemand = false }) => onDemand === flags.full)
}

async function measure(benchmarks: readonly Benchmark[]): Promise<void> {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  const place = makePlace()
  const machine = await describeMachine(place)
  if (machine.others > OTHERS_SHOWN) {
    console.log(`Others use ${percent(machine.others)} of this machine: the figures will be too low.`)
  }
  for (const benchmark of benchmarks) {
    const { name, title, onDemand = false } = benchmark
    const plan = PLANS[flags.quick ? 'quick' : onDemand ? 'full' : 'default']
    console.log(`\n${name}: ${title}`)
    const folder = path.join(place, name)
    mkdirSync(folder)
    const othersSince = watchOthers()
    const result = await benchmark.run({ plan, place: folder, say: (line) => console.log(`  ${line}`) })
    const others = othersSince() ?? machine.others
    rmSync(folder, { recursive: true })
    for (const line of resultLines(result)) console.log(line)
    if (flags.quick) continue
    if (others > OTHERS_SHOWN) {
      console.log(`  Not written: others used ${percent(others)} of the machine during the measurement.`)
      process.exitCode = 1
    } else write({ name, machine: { ...machine, others }, rounds: plan.rounds, seconds: plan.seconds, ...result })
  }
}

function write(measured: Measured): void {
  const names = BENCHMARKS.map(({ name }) => name)
  writeFileSync(PAGE, pageText(BENCHMARKS, saveResult(RESULTS, measured, names)))
}

function stop(sentence: string): never {
  console.error(`bench: ${sentence}`)
  process.exit(2)
}
