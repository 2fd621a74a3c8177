/**
 * Statistics of an experiment: shares with Wilson's interval, and mean differences with Student's interval, both at 95
 * %.
 */
import { duration } from '@tacho/contract/engine/format.ts'
import { meanMargin, shareInterval, shareText, type Share } from '@tacho/contract/runs/statistics.ts'
import { spokenMoney, spokenNumber } from '../../engine/output.ts'
import { VERDICTS, type RunFacts, type Verdict } from './run-facts.ts'
import type { RunResult } from './experiment-folder.ts'

/** The mean difference between replays and originals, over the runs with both values. */
export interface MeanDifference {
  name: string
  runs: number
  before: number
  after: number
  mean: number
  /** Half the 95 % interval around the mean; null: fewer than two runs. */
  margin: number | null
}

interface Likely extends Share {
  low: number
  high: number
}

export interface ExperimentSums {
  replayed: number
  /** Number of runs that followed their tape. Other runs were cut short and count nowhere else. */
  kept: number
  verdicts: Record<Verdict, number>
  anotherWay: Likely
  completedBefore: Likely
  completedAfter: Likely
  /** The share of improved runs among those that got better or worse. By chance, it would be a half. */
  better: Likely
  differences: MeanDifference[]
}

export function sumsOf(results: readonly RunResult[]): ExperimentSums {
  const keptRuns = results.filter(({ way }) => way === null)
  const count = (of: readonly RunResult[], holds: (result: RunResult) => boolean) => of.filter(holds).length
  const verdicts = Object.fromEntries(
    VERDICTS.map((verdict) => [verdict, count(results, (result) => result.verdict === verdict)]),
  ) as Record<Verdict, number>
  const completed = (side: 'before' | 'after') =>
    likely(
      count(keptRuns, (result) => result[side].outcome === 'COMPLETED'),
      keptRuns.length,
    )
  const differences = Object.entries(NUMBERS).map(([name, read]) => differenceOf(name, keptRuns, read))
  const scores = new Set(keptRuns.flatMap(({ after }) => Object.keys(after.scores)))
  for (const name of [...scores].sort())
    differences.push(differenceOf(`score ${name}`, keptRuns, ({ scores: all }) => all[name] ?? null))
  const measured = keptRuns.flatMap(({ measure }) => (measure === null ? [] : [{ before: 0, after: measure }]))
  if (measured.length > 0) differences.push(meanOf('measure', measured))
  return {
    replayed: results.length,
    kept: keptRuns.length,
    verdicts,
    anotherWay: likely(results.length - keptRuns.length, results.length),
    completedBefore: completed('before'),
    completedAfter: completed('after'),
    better: likely(verdicts.better, verdicts.better + verdicts.worse),
    differences: differences.filter(({ runs }) => runs > 0),
  }
}

const NUMBERS: Record<string, (facts: RunFacts) => number | null> = {
  steps: ({ steps }) => steps,
  cost: ({ cost }) => cost,
  tokens: ({ tokens }) => tokens,
  'time in models': ({ modelMs }) => modelMs,
}

function likely(matching: number, whole: number): Likely {
  const [low, high] = shareInterval({ part: matching, whole })
  return { part: matching, whole, low, high }
}

function differenceOf(name: string, results: readonly RunResult[], read: (facts: RunFacts) => number | null) {
  const pairs = results.flatMap((result) => {
    const [before, after] = [read(result.before), read(result.after)]
    return before === null || after === null ? [] : [{ before, after }]
  })
  return meanOf(name, pairs)
}

function meanOf(name: string, pairs: readonly { before: number; after: number }[]): MeanDifference {
  const changes = pairs.map(({ before, after }) => after - before)
  const count = pairs.length
  const mean = (values: readonly number[]) => (count === 0 ? 0 : total(values) / count)
  const squares = total(changes.map((change) => change ** 2))
  return {
    name,
    runs: count,
    before: mean(pairs.map(({ before }) => before)),
    after: mean(pairs.map(({ after }) => after)),
    mean: mean(changes),
    margin: meanMargin({ count, sum: total(changes), squares }),
  }
}

const total = (values: readonly number[]): number => values.reduce((sum, one) => sum + one, 0)

/** Sentences for people, in the terminal and on the page. */
export function sumLines(sums: ExperimentSums): string[] {
  const { replayed, kept, verdicts, anotherWay, completedBefore, completedAfter, better, differences } = sums
  if (replayed === 0) return ['No run was replayed.']
  const lines = [
    `Better: ${verdicts.better}. Worse: ${verdicts.worse}. Same: ${verdicts.same}. Went another way: ${shareText(anotherWay)}.`,
  ]
  if (kept === 0) return lines
  lines.push(`Completed before: ${shareText(completedBefore)}; now: ${shareText(completedAfter)}.`)
  if (better.whole > 0) {
    const shows = better.low > 0.5 ? 'better beyond chance' : better.high < 0.5 ? 'worse beyond chance' : null
    lines.push(
      `Of the runs that changed, ${shareText(better)} got better: ${shows ?? 'no difference that these numbers can show'}.`,
    )
  }
  lines.push(...differences.map(differenceText))
  const notes = 'Intervals are of 95 %: Wilson’s for shares, Student’s for mean differences of a run and its replay.'
  return [...lines, kept < replayed ? `${notes} Runs that went another way are not in them.` : notes]
}

function differenceText({ name, runs, before, after, mean, margin }: MeanDifference): string {
  const shown = shownAs(name)
  const sign = mean > 0 ? '+' : mean < 0 ? '−' : ''
  const change = `${sign}${shown(Math.abs(mean))}${margin === null ? '' : ` ± ${shown(margin)}`}`
  const certain = margin !== null && Math.abs(mean) > margin ? '' : ', so perhaps none'
  const sides = name === 'measure' ? '' : ` from ${shown(before)} to ${shown(after)},`
  return `${name[0]?.toUpperCase()}${name.slice(1)} per run:${sides} ${change}${mean === 0 ? '' : certain} (${spokenNumber(runs)} runs).`
}

export function shownAs(name: string): (value: number) => string {
  if (name === 'cost') return (value) => spokenMoney(Number(value.toPrecision(3)))
  if (name === 'time in models') return (value) => duration(Math.round(value))
  return (value) => spokenNumber(Number(value.toPrecision(4)))
}
