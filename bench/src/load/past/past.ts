/** The process that decides calls by policies on the past of a run, with the policy engine or with handwritten rules. */
import { decide, type Decision } from '@tacho/policy/decide.ts'
import { type HistoryCall, RunHistory } from '@tacho/policy/history/run-history.ts'
import { preparedFor } from '@tacho/policy/history/tool-labels.ts'
import { pastCase, type NextCall, type PastCase } from '../../benchmarks/past-policies.ts'
import { answer } from '../../child.ts'
import { timesOf } from '../../stats.ts'
import { RunByHand } from './by-hand.ts'
import { collectGarbage } from '../../../../packages/server/test/setup/heap-growth.ts'

export interface PastLoad {
  by: 'engine' | 'hand'
  /** Number of calls in the run. */
  calls: number
  /** How many long outputs are measured. */
  turns: number
  seconds: number
}

export interface PastCost {
  /** The fastest tenth, which other programs disturb least. */
  p10Us: number
  p50Us: number
  p99Us: number
  /** Memory of the history of one run. */
  memoryKb: number
  /** Time to read an output of 10 kB, and one of 262 kB. */
  outputUs: number
  longOutputUs: number
  /** Longest turn of the event loop while the long output is read. The engine may read it in several turns. */
  longestTurnUs: number
}

/** The past of one run, and decisions that depend on it. */
interface Judge {
  said(words: string): void
  ended(call: HistoryCall): void
  /** Returns the number of policies that match. */
  decide(call: NextCall): number
}

const LONG_CHARS = 262_144
const LONG_OUTPUTS = LONG_CHARS / 10_000

answer<PastLoad, PastCost>(({ by, calls, turns: times, seconds }) => {
  const given = pastCase(calls)
  const waiting: (() => void)[] = []
  const make = (): Judge => (by === 'engine' ? byEngine(given) : new RunByHand())
  const makeOnLoop = (): Judge =>
    by === 'engine' ? byEngine(given, new RunHistory((act) => waiting.push(act))) : new RunByHand()
  decideAll(given, make, seconds / 4)
  const decisions = decideAll(given, make, seconds)
  const { p50, p99 } = timesOf(decisions)
  const outputUs = timesOf(given.calls.map((_, n) => timeOfOutput(given, make(), n, 1))).p50 * 1_000
  const long = Array.from({ length: times }, (_, n) => timeOfOutput(given, make(), n * 27, LONG_OUTPUTS))
  const longest = Array.from({ length: times }, (_, n) => {
    const turns = [timeOfOutput(given, makeOnLoop(), n * 27, LONG_OUTPUTS)]
    for (let act = waiting.shift(); act; act = waiting.shift()) turns.push(timeOf(act))
    return Math.max(...turns)
  })
  return {
    p10Us: (decisions.toSorted((a, b) => a - b)[Math.floor(decisions.length / 10)] ?? Number.NaN) * 1_000,
    p50Us: p50 * 1_000,
    p99Us: p99 * 1_000,
    memoryKb: memoryOf(given, make),
    outputUs,
    longOutputUs: timesOf(long).p50 * 1_000,
    longestTurnUs: timesOf(longest).p50 * 1_000,
  }
})

/** Measures decisions. Each decided call then ends, as in an agent, with an output so short that the run hardly grows. */
function decideAll({ said, calls, next }: PastCase, make: () => Judge, seconds: number): number[] {
  const took: number[] = []
  const end = performance.now() + seconds * 1_000
  let matches = 0
  do {
    const judge = make()
    judge.said(said)
    for (const call of calls) judge.ended(call)
    judge.decide(next[0] as NextCall)
    for (const [n, call] of next.entries()) {
      const from = performance.now()
      matches += judge.decide(call)
      took.push(performance.now() - from)
      judge.ended({ ...call, ok: true, decision: 'ALLOW', does: call.labels, labels: ['ours'], output: `done ${n}` })
    }
  } while (performance.now() < end)
  if (matches === 0) throw new Error('No policy ever matched')
  return took
}

function timeOfOutput({ calls }: PastCase, judge: Judge, first: number, count: number): number {
  const outputs = Array.from({ length: Math.ceil(count) }, (_, n) => calls[(first + n) % calls.length]?.output)
  const call = { ...(calls[0] as HistoryCall), output: outputs.join('').slice(0, LONG_CHARS) }
  return timeOf(() => judge.ended(call))
}

function timeOf(act: () => void): number {
  const from = performance.now()
  act()
  return performance.now() - from
}

function memoryOf({ said, calls }: PastCase, make: () => Judge): number {
  const used = () => {
    // Collect twice, because only the second collection frees objects behind weak references.
    for (let times = 0; times < 2; times++) collectGarbage()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const before = used()
  const judges = Array.from({ length: 8 }, make)
  for (const judge of judges) {
    judge.said(said)
    for (const call of calls) judge.ended(call)
  }
  return (used() - before) / judges.length / 1_000
}

function byEngine({ policies }: PastCase, history = new RunHistory()): Judge {
  const prepare = preparedFor(policies)
  return {
    said: (words) => history.said(words),
    // Prepares the past when a call ends, outside of a decision, as the SDK does.
    ended(call) {
      history.ended(call)
      prepare(history)
    },
    decide({ tool, input, labels }) {
      const facts = { tool: { name: tool, input, labels }, run: { history }, now: 1_780_000_000_000 }
      const { matched, failures }: Decision = decide(policies, facts)
      const [failure] = failures
      if (failure) throw new Error(`${failure.policyId}: ${failure.message}`)
      return matched.length
    },
  }
}
