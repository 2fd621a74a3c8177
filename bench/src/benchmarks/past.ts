/** The cost of policies on a run's past for an agent, in both languages. */
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { pythonCommand } from '../../../packages/sdk-conformance/test/python.ts'
import type { Benchmark } from '../benchmark.ts'
import { startChild } from '../child.ts'
import type { PastCost, PastLoad } from '../load/past/past.ts'
import { ROOT } from '../place.ts'
import { below, row, type Row } from '../result.ts'
import { inTurn } from '../rounds.ts'
import { CALLS, OUTPUT_CHARS, pastCase } from './past-policies.ts'

/** Calls in a quick run: as many as the case with a long output needs. */
const QUICK_CALLS = 30
const LONG_TURNS = 7

export const past: Benchmark = {
  name: 'past',
  title: 'Policies on the past of a run',
  part: 'policies',
  about: [
    `One decision by 10 policies, each of which reads the past: \`run.labels\`, \`run.calls\` and \`origin(…)\`. The run has ${CALLS} calls whose outputs \
have ${OUTPUT_CHARS / 1_000} kB each. Each decided call then ends, and the next one has other values: up to four that were not looked up before, half of which are in an output. \
**Memory** is that of the whole history of one such run. An output is read once, when its call ends: one of 10 kB, and one of 262,144 characters, the most of one text. \
**The longest turn** is of an output of 262 kB on an event loop, as the SDKs read it: in parts, in other turns. In one piece it is read by a Python host without \
an event loop, and before a decision that comes before its parts are read (in Python on an event loop, such a decision waits for the parts).`,
    'The bare limit is the same ten rules written by hand in the same language, for this case alone: it looks up whole words in one hash table, normalises nothing, \
finds nothing in other spellings, and has no bound on its memory.',
  ],
  run: async (setting) => {
    const file = path.join(setting.place, 'case.json')
    const calls = setting.plan.size === 'quick' ? QUICK_CALLS : CALLS
    const turns = setting.plan.size === 'quick' ? 1 : LONG_TURNS
    writeFileSync(file, JSON.stringify({ ...pastCase(calls), turns }))
    const seconds = setting.plan.seconds / 2
    await using load = startChild<PastLoad, PastCost>(new URL('../load/past/past.ts', import.meta.url))
    const typeScript = (by: PastLoad['by']) => () => load.call({ by, calls, turns, seconds })
    const inPython = (by: PastLoad['by']) => () => measuredInPython(file, by, seconds)
    const rows = rowsOf(
      'TypeScript',
      await inTurn(setting, { engine: typeScript('engine'), hand: typeScript('hand') }, { warmUp: true }),
    )
    if (!pythonCommand)
      return { rows, notes: ['Python was not measured: no python3 of version 3.10 or newer was found.'] }
    rows.push(...rowsOf('Python', await inTurn(setting, { engine: inPython('engine'), hand: inPython('hand') })))
    return { rows, notes: [] }
  },
}

type Figures = Record<keyof PastCost, number[]>

function rowsOf(language: string, { engine, hand }: { engine: Figures; hand: Figures }): Row[] {
  return [
    row(`${language}: decision, the fastest tenth`, 'µs', engine.p10Us, hand.p10Us),
    row(`${language}: decision, p50`, 'µs', engine.p50Us, hand.p50Us),
    row(`${language}: decision, p99`, 'µs', engine.p99Us, hand.p99Us, below(25)),
    row(`${language}: memory of a run`, 'kB', engine.memoryKb, hand.memoryKb, below(1_000)),
    row(`${language}: an output of 10 kB`, 'µs', engine.outputUs, hand.outputUs),
    row(
      `${language}: an output of 262 kB, in one piece`,
      'ms',
      milliseconds(engine.longOutputUs),
      milliseconds(hand.longOutputUs),
      below(5),
    ),
    row(
      `${language}: an output of 262 kB, the longest turn`,
      'ms',
      milliseconds(engine.longestTurnUs),
      milliseconds(hand.longestTurnUs),
      below(5),
    ),
  ]
}

const milliseconds = (microseconds: number[]) => microseconds.map((each) => each / 1_000)

/** A new process for each round: it prints its costs. */
async function measuredInPython(file: string, by: PastLoad['by'], seconds: number): Promise<PastCost> {
  const program = path.join(import.meta.dirname, '../load/past/past.py')
  const env = { ...process.env, PYTHONPATH: path.join(ROOT, 'sdks/python/src') }
  const child = spawn(pythonCommand as string, [program, file, by, String(seconds)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env,
  })
  const printed = await text(child.stdout)
  if (printed === '') throw new Error(`${program} printed nothing`)
  return JSON.parse(printed) as PastCost
}
