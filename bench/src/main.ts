/**
 * npm run bench                    all benchmarks; writes docs/benchmarks.md
 * npm run bench -- ingest config   only these; replaces their part of the page
 * npm run bench -- --full          the long ones, with ten million events
 * npm run bench -- --events N       this many stored events, for benchmarks that store some; their notes say how many
 * npm run bench -- --rounds N       this many rounds instead of five
 * npm run bench -- --quick         runs each for a moment; writes nothing
 * npm run bench -- --anyway        writes and marks figures although other programs use the machine
 * npm run bench -- --page          measures nothing; writes the page again, for example after a change of its texts
 * npm run bench -- --list          lists the names
 */
import { mkdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import type { Benchmark } from './benchmark.ts'
import { BENCHMARKS } from './benchmarks.ts'
import { BATCH_EVENTS } from './load/events.ts'
import { describeMachine, watchOthers } from './machine.ts'
import { OTHERS_SHOWN } from './page.ts'
import { makePlace, ROOT } from './place.ts'
import { PLANS, type Plan } from './plan.ts'
import { resultLines } from './report.ts'
import { saveResult, writePage } from './results.ts'
import { percent } from './text.ts'

const FILES = {
  results: path.join(ROOT, 'bench/results.jsonl'),
  page: path.join(ROOT, 'docs/benchmarks.md'),
  limits: path.join(ROOT, 'docs/limits.md'),
  benchmarks: BENCHMARKS,
}

const { values: flags, positionals: names } = readArguments()
if (flags.list) {
  for (const { name, title } of BENCHMARKS) console.log(`${name.padEnd(18)}${title}`)
} else if (flags.page) {
  writePage(FILES)
} else {
  await measure(chosen())
}

function readArguments() {
  const boolean = { type: 'boolean', default: false } as const
  try {
    const options = {
      quick: boolean,
      full: boolean,
      anyway: boolean,
      page: boolean,
      list: boolean,
      events: { type: 'string' } as const,
      rounds: { type: 'string' } as const,
    }
    return parseArgs({ allowPositionals: true, options })
  } catch (error) {
    return stop((error as Error).message)
  }
}

function chosen(): Benchmark[] {
  const unknown = names.filter((name) => !BENCHMARKS.some((benchmark) => benchmark.name === name))
  if (unknown.length > 0) stop(`There is no benchmark ${unknown.join(', ')}; --list lists their names.`)
  if (names.length > 0) return BENCHMARKS.filter(({ name }) => names.includes(name))
  return BENCHMARKS.filter(({ onDemand = false }) => onDemand === flags.full)
}

function planOf(onDemand: boolean): Plan {
  const named = PLANS[flags.quick ? 'quick' : onDemand ? 'full' : 'default']
  const plan = { ...named, rounds: Number(flags.rounds ?? named.rounds) }
  if (!Number.isSafeInteger(plan.rounds) || plan.rounds <= 0) stop('--rounds must be a whole number from 1.')
  if (flags.events === undefined) return plan
  const storedEvents = Number(flags.events)
  if (!Number.isSafeInteger(storedEvents / BATCH_EVENTS) || storedEvents <= 0)
    stop(`--events must be a multiple of ${BATCH_EVENTS}.`)
  return { ...plan, storedEvents }
}

async function measure(benchmarks: readonly Benchmark[]): Promise<void> {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  const place = makePlace()
  const machine = await describeMachine(place)
  if (machine.others > OTHERS_SHOWN) {
    console.log(`Other programs use ${percent(machine.others)} of this machine: the figures will be too low.`)
  }
  for (const benchmark of benchmarks) {
    const { name, title, onDemand = false } = benchmark
    const plan = planOf(onDemand)
    console.log(`\n${name}: ${title}`)
    const folder = path.join(place, name)
    mkdirSync(folder)
    const othersSince = watchOthers()
    const result = await benchmark.run({ plan, place: folder, say: (line) => console.log(`  ${line}`) })
    const others = othersSince() ?? machine.others
    rmSync(folder, { recursive: true })
    for (const line of resultLines(result)) console.log(line)
    if (flags.quick) continue
    const circumstances = { name, machine: { ...machine, others }, rounds: plan.rounds, seconds: plan.seconds }
    if (!saveResult(FILES, { ...circumstances, ...result }, flags.anyway)) {
      const use = `other programs used ${percent(others)} of the machine during the measurement`
      console.log(`  Not written: ${use}. Stop them, or add --anyway.`)
      process.exitCode = 1
    }
  }
}

function stop(sentence: string): never {
  console.error(`bench: ${sentence}`)
  process.exit(2)
}
