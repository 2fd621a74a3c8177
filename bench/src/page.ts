/** Writes the whole text of docs/benchmarks.md from the results. */
import type { Benchmark } from './benchmark.ts'
import { PARTS, type PartName } from './parts.ts'
import { budgetText, verdict, withUnit } from './report.ts'
import type { Measured, Row } from './result.ts'
import { figure, percent, ratio, spread } from './text.ts'

/** Maximum share of the machine for other programs. Above it, a result is refused, or marked with --anyway. */
export const OTHERS_SHOWN = 0.1

type Results = ReadonlyMap<string, Measured>

const HEAD = `# Benchmarks

This page shows the work that one small machine does with Tacho, and how close that is to the most it could do. \`npm run bench\` writes this page. Run it
to see the figures of your machine.

## How to read it

- Tacho runs the way users run it: in its own process, with the default settings unless a section says otherwise. The load
  generator is another process **on the same machine** and takes its share of it. Nothing leaves the machine.
- **Only correct answers count**: the status is checked, and every event must be accepted. Acknowledged events are on disk.
- Beside each figure is the **bare limit**: what the driver or the framework does alone, with the same data and the same
  durability. Both are measured in turn, round by round, after a warm-up that does not count.
- A figure is the **median** of the rounds, with the smallest and the largest in brackets. The **ratio** is computed for each
  round: 1 is as good as the bare limit, 0.5 half as good, for rates and for times.
- Budgets were set before anything was measured. The tables show missed ones.
- The use of the machine by other programs is measured during the rounds. Above a tenth, figures are not written, or are
  marked with that share.
`

const NOT_MEASURED = `## What is not measured

- A network between client and server, and TLS.
- Many tenants at a time, and many people who read at once.
- Disks that report a flush before the data is safe. Figures from such disks mean little.
- Other systems. Before you compare, check that the other system acknowledges only after writing to disk.
`

export function pageText(benchmarks: readonly Benchmark[], results: Results): string {
  const measured = benchmarks.flatMap(({ name }) => results.get(name) ?? [])
  const newest = measured.toSorted((a, b) => (a.machine.date < b.machine.date ? 1 : -1))[0]
  const parts = (Object.keys(PARTS) as PartName[]).map((part) => partText(part, benchmarks, results, newest))
  return [
    HEAD,
    newest ? `${circumstances(newest)}\n` : '',
    budgetsText(benchmarks, results),
    ...parts,
    NOT_MEASURED,
  ].join('\n')
}

function circumstances({ machine, rounds, seconds }: Measured): string {
  const { cpu, memory, system, diskWriteMs, date, commit, node } = machine
  const busy =
    machine.others > OTHERS_SHOWN ? ` **Other programs used ${percent(machine.others)} of the machine.**` : ''
  return `Measured on ${date} at commit ${commit} with Node ${node}: ${rounds} rounds, up to ${seconds} s for each side of a round. \
Machine: ${cpu}, ${memory}, ${system}; a write of 4 KiB reaches its disk in ${figure(diskWriteMs)} ms.${busy}`
}

function budgetsText(benchmarks: readonly Benchmark[], results: Results): string {
  const lines = benchmarks.flatMap((benchmark) => {
    const { rows = [], machine } = results.get(benchmark.name) ?? {}
    const others =
      machine && machine.others > OTHERS_SHOWN ? `; other programs used ${percent(machine.others)} of the machine` : ''
    return rows.flatMap((row) =>
      row.budgets.map((budget) => {
        const found = budget.of === 'ours' ? withUnit(row, spread(row.ours)) : row.ratio && spread(row.ratio, ratio)
        const where = `[${benchmark.title}](#${anchorOf(benchmark)})`
        return `| ${where} | ${row.what} | ${budgetText(row, budget)} | ${found}${others} | ${verdict(row, budget)} |`
      }),
    )
  })
  return ['## Budgets', '', '| | what | budget | measured | |', '|---|---|---|---|---|', ...lines, ''].join('\n')
}

function partText(part: PartName, benchmarks: readonly Benchmark[], results: Results, newest?: Measured): string {
  const { title, about } = PARTS[part]
  const sections = benchmarks
    .filter((benchmark) => benchmark.part === part)
    .map((benchmark) => sectionText(benchmark, results.get(benchmark.name), newest))
  return [`## ${title}`, '', ...about.flatMap((text) => [text, '']), ...sections].join('\n')
}

function sectionText(benchmark: Benchmark, measured?: Measured, newest?: Measured): string {
  const head = [`### ${headingOf(benchmark)}`, '', ...benchmark.about.flatMap((text) => [text, ''])]
  if (measured === undefined) {
    return [
      ...head,
      `Not measured yet: \`npm run bench -- ${benchmark.onDemand ? '--full' : benchmark.name}\`.`,
      '',
    ].join('\n')
  }
  const notes = [...measured.notes]
  if (newest && circumstances(newest) !== circumstances(measured)) notes.push(circumstances(measured))
  return [
    ...head,
    ...(measured.table ? [...measured.table, ''] : []),
    `| | Tacho | ${benchmark.beside ?? 'bare limit'} | ratio |`,
    '|---|---|---|---|',
    ...measured.rows.map(rowText),
    '',
    ...notes.map((note) => `- ${note}`),
    ...(notes.length > 0 ? [''] : []),
  ].join('\n')
}

function rowText(row: Row): string {
  const bare = row.bare === null ? '' : withUnit(row, spread(row.bare))
  return `| ${row.what} | ${withUnit(row, spread(row.ours))} | ${bare} | ${row.ratio ? spread(row.ratio, ratio) : ''} |`
}

/** The title with the name for the command line. */
const headingOf = ({ title, name }: Benchmark): string => `${title} (\`${name}\`)`

/** The anchor that code hosting sites give the heading. */
const anchorOf = (benchmark: Benchmark): string =>
  headingOf(benchmark)
    .toLowerCase()
    .replaceAll(/[^\w -]/g, '')
    .replaceAll(' ', '-')
