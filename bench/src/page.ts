/** docs/benchmarks.md, whole, from what was measured. */
import type { Benchmark } from './benchmark.ts'
import type { Machine } from './machine.ts'
import type { Row } from './result.ts'
import type { Measured } from './results.ts'
import { budgetText, verdict, withUnit } from './report.ts'
import { figure, percent, ratio, spread } from './text.ts'

const HEAD = `# Benchmarks

What one small machine does with Tacho, and how near that is to what it could do at all. This page is written by
\`npm run bench\`; run it to see your own figures.

## How to read it

- Tacho runs as users run it, in a process of its own, with the default settings unless a section says otherwise. Whatever
  makes the load is another process **on the same machine** and takes its share of it. Nothing leaves the machine.
- **Every answer counts only if it is right**: its status is checked, and that all events were accepted. What was
  acknowledged is on disk.
- Beside each figure stands the **bare limit**: what the driver or the framework does alone, with the same data and the
  same durability. Both are measured in turn, round by round, after a warm-up that does not count.
- A figure is the **median** of the rounds, with the smallest and the largest in brackets. The **ratio** is made round by
  round too: 1 is as good as the bare limit, 0.5 half as good.
- Budgets were set before anything was measured. One that is missed says so.
`

const NOT_MEASURED = `## What is not measured

- A network between client and server, and TLS.
- More than one tenant at a time, and reads by many clients at once.
- Disks that answer a flush before the data is safe: the figures then mean little.
- Other systems. Their own figures are made on other machines with other promises; see whether an answer of theirs means
  that the event is on disk.
`

export function pageText(benchmarks: readonly Benchmark[], results: ReadonlyMap<string, Measured>): string {
  const measured = benchmarks.flatMap(({ name }) => results.get(name) ?? [])
  const newest = measured.toSorted((a, b) => (a.machine.date < b.machine.date ? 1 : -1))[0]?.machine
  const sections = benchmarks.map((benchmark) => sectionText(benchmark, results.get(benchmark.name), newest))
  return [HEAD, machineText(newest), budgetsText(measured), ...sections, NOT_MEASURED].join('\n')
}

function machineText(machine: Machine | undefined): string {
  if (machine === undefined) return ''
  return `Machine: ${hardwareText(machine)}.\n`
}

function hardwareText({ cpu, memory, system, diskWriteMs }: Machine): string {
  return `${cpu}, ${memory}, ${system}; a 4 KiB write reaches its disk in ${figure(diskWriteMs)} ms`
}

function budgetsText(measured: readonly Measured[]): string {
  const lines = measured.flatMap(({ name, rows }) =>
    rows.flatMap((row) =>
      row.budgets.map((budget) => {
        const found = budget.of === 'ours' ? withUnit(row, spread(row.ours)) : row.ratio && spread(row.ratio, ratio)
        return `| [${name}](#${name}) | ${row.what} | ${budgetText(row, budget)} | ${found} | ${verdict(row, budget)} |`
      }),
    ),
  )
  return ['## Budgets', '', '| | what | budget | measured | |', '|---|---|---|---|---|', ...lines, ''].join('\n')
}

function sectionText(benchmark: Benchmark, measured: Measured | undefined, newest: Machine | undefined): string {
  const { name, title, about, onDemand = false } = benchmark
  const command = onDemand ? 'npm run bench -- --full' : `npm run bench -- ${name}`
  const head = [`## ${name}`, '', `**${title}.** ${about[0]}`, ...about.slice(1).flatMap((text) => ['', text]), '']
  if (measured === undefined) return [...head, `Not measured yet: \`${command}\`.`, ''].join('\n')
  const { rows, notes } = measured
  return [
    ...head,
    '| | Tacho | bare limit | ratio |',
    '|---|---|---|---|',
    ...rows.map(rowText),
    '',
    ...notes.map((note) => `- ${note}`),
    `- ${circumstances(measured, newest, command)}`,
    '',
  ].join('\n')
}

function rowText(row: Row): string {
  const bare = row.bare === null ? '' : withUnit(row, spread(row.bare))
  return `| ${row.what} | ${withUnit(row, spread(row.ours))} | ${bare} | ${row.ratio ? spread(row.ratio, ratio) : ''} |`
}

function circumstances({ machine, rounds, seconds }: Measured, newest: Machine | undefined, command: string): string {
  const other = newest && hardwareText(newest) !== hardwareText(machine) ? ` on ${hardwareText(machine)}` : ''
  const busy = machine.busyBefore > 0.1 ? `, while others used ${percent(machine.busyBefore)} of the machine` : ''
  return `\`${command}\`, ${machine.date}, commit ${machine.commit}, Node ${machine.node}${other}${busy}; ${rounds} rounds, ${seconds} s each for us and for the bare limit where nothing else is said.`
}
