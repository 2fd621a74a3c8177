/** Replays the runs of an experiment that have no result yet, several at once, until a bound is reached. */
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { EventInput } from '@tacho/contract/record/event.ts'
import { printable, spokenMoney } from '../../engine/output.ts'
import { failed } from '../../engine/stop.ts'
import type { Recorder } from '../recorder-client.ts'
import type { RunEvent } from '../tape/recorded-steps.ts'
import { linkedEvents, replayCommand, type EndedCommand } from '../tape/replay-command.ts'
import { withPrompts } from '../tape/replacements.ts'
import { readTape, type Tape } from '../tape/tape.ts'
import { ignoredOf } from '../tape-files.ts'
import type { ChosenRun, Experiment, ExperimentFolder, RunResult } from './experiment-folder.ts'
import type { Measure } from './measure.ts'
import { factsOf, modelPayloads, scoresIn, verdictOf, type Pricing } from './run-facts.ts'

export interface Bounds {
  /** Maximum US dollars, over all replays since the experiment began. */
  maxCost: number | undefined
  /** Time limit, counted from now. */
  maxMs: number | undefined
  parallel: number
}

interface Tools {
  folder: ExperimentFolder
  pricing: Pricing
  measure: Measure | undefined
  recorder: Recorder | undefined
  onResult: (result: RunResult) => void
  signal: AbortSignal
}

/** Stop after this many replays if none of them recorded anything. */
const SILENT_MAX = 3

/** @returns why it ended early; undefined if each run has a result. */
export async function replayRuns(experiment: Experiment, bounds: Bounds, tools: Tools): Promise<string | undefined> {
  const { folder, signal } = tools
  const stop = new AbortController()
  let reason: string | undefined
  const end = (why: string) => {
    reason ??= why
    stop.abort()
  }
  const onSignal = () => end('it was interrupted')
  signal.addEventListener('abort', onSignal)
  const timer = bounds.maxMs === undefined ? undefined : setTimeout(() => end('--max-time was reached'), bounds.maxMs)
  const checkCost = () => {
    const { maxCost } = bounds
    if (maxCost !== undefined && folder.spent >= maxCost)
      end(`--max-cost was reached: ${spokenMoney(Math.round(folder.spent * 1e6) / 1e6)} were spent`)
  }
  const silent: string[] = []
  const next = experiment.chosen.filter(({ run }) => !folder.results.has(run)).values()
  const work = async () => {
    for (const chosen of next) {
      checkCost()
      if (stop.signal.aborted) return
      const replayed = await replayOne(experiment, chosen, {
        ...tools,
        signal: stop.signal,
        refusal: () => (stop.signal.aborted ? `The experiment has ended: ${reason}` : undefined),
        onCost: ({ unknown }) => {
          checkCost()
          if (unknown.length === 0 || bounds.maxCost === undefined) return
          const [model = ''] = unknown
          end(
            `the cost of ${printable(model)} is not known, so --max-cost cannot hold: set a price with tacho prices set`,
          )
        },
      })
      if (replayed === 'stopped') return
      if ('run' in replayed) {
        folder.finish(replayed)
        tools.onResult(replayed)
        continue
      }
      silent.push(replayed.why)
      if (silent.length >= SILENT_MAX && folder.results.size === 0) end(replayed.why)
    }
  }
  try {
    await Promise.all(Array.from({ length: bounds.parallel }, work))
  } finally {
    stop.abort()
    clearTimeout(timer)
    signal.removeEventListener('abort', onSignal)
  }
  return reason ?? silent[0]
}

interface OneTools extends Tools {
  refusal: () => string | undefined
  onCost: (costed: { unknown: string[] }) => void
}

async function replayOne(
  { settings, name }: Experiment,
  { run, tape: file, checksum, scores }: ChosenRun,
  { folder, pricing, measure, recorder, signal, refusal, onCost }: OneTools,
): Promise<RunResult | 'stopped' | { why: string }> {
  const tape = readChosen(path.join(folder.folder, file), checksum)
  const attempt = randomUUID()
  let costing = Promise.resolve()
  const charge = async (events: readonly RunEvent[]) => {
    const costed = await pricing.costOf(modelPayloads(events))
    folder.spend(run, attempt, costed.cost)
    onCost(costed)
  }
  const { command, prompts, policies, labels, ignore, readOnly, stubs, timeoutSeconds } = settings
  const replay: EndedCommand = await replayCommand(withPrompts(tape, prompts), command, {
    mode: 'tools',
    ignored: ignoredOf(ignore),
    readOnly: new Set(readOnly),
    stubs: new Map(Object.entries(stubs)),
    policies,
    labels,
    timeoutMs: timeoutSeconds * 1_000,
    output: 'tail',
    signal,
    // Requests to models go through this process. So none is sent beyond a bound, or by a command that outlives a
    // killed experiment. Not possible behind an HTTP proxy, which `fetch` does not support.
    asksThroughHost: !['HTTPS_PROXY', 'https_proxy'].some((variable) => process.env[variable]),
    refusal,
    onEvents: (events) => {
      costing = costing.then(() => charge([...events]))
    },
  }).catch((error: NodeJS.ErrnoException) => {
    throw error.code === undefined ? error : failed(`${printable(command[0] ?? '')} cannot be started (${error.code}).`)
  })
  await costing
  if (replay.isStopped) return 'stopped'
  if (replay.isSilent) return { why: silentText(replay) }
  const before = await factsOf({ steps: tape.steps, outcome: tape.head.outcome, scores }, pricing)
  const after = await factsOf(
    { steps: replay.steps, outcome: replay.outcome, scores: scoresIn(replay.events) },
    pricing,
  )
  const way = replay.departure && { step: replay.departure.step, sentence: replay.departure.sentence }
  const value = measure
    ? await measure({ run, before: { ...before, timeline: tape.steps }, after: { ...after, timeline: replay.steps } })
    : null
  const events = linkedEvents(replay.events, run, { experiment: name }) as unknown as EventInput[]
  const { refused = [] } = (await recorder?.record(events)) ?? {}
  if (refused[0]) throw failed(`The replay of ${printable(run)} could not be recorded: ${refused[0].message}.`)
  return {
    run,
    before,
    after,
    way,
    measure: value,
    verdict: verdictOf({ before, after, way, measure: value }),
    seconds: Math.round(replay.milliseconds / 100) / 10,
    exitCode: replay.code,
    isTimedOut: replay.isTimedOut,
    recorded: recorder ? (events[0]?.runId ?? null) : null,
  }
}

function readChosen(file: string, checksum: string): Tape {
  const tape = readTape(readFileSync(file))
  if (tape.head.checksum !== checksum) throw failed(`${printable(file)} is not the tape that was chosen.`)
  return tape
}

function silentText({ code, stderr }: EndedCommand): string {
  const written = stderr.trim().split('\n')
  const last = written.findLast((line) => /error/i.test(line)) ?? written.at(-1) ?? ''
  return `the command recorded nothing (exit code ${code ?? 'unknown'})${last === '' ? '' : `: ${printable(last.slice(0, 300))}`}`
}
