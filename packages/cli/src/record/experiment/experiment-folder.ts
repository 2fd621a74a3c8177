/**
 * An experiment on disk. Its folder has `experiment.json` (what is replayed with what, written once all tapes are there),
 * `tapes`, and `log.jsonl`: a line for each result, and for what each replay has cost so far. So a killed experiment goes on with
 * the runs that have no result, and knows what it spent.
 *
 *   choosing --experiment.json is written--> replaying --each run has a result--> complete
 *   killed while choosing: begins anew; killed while replaying: replays that have no result begin anew
 */
import {
  appendFileSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { printable } from '../../engine/output.ts'
import { failed } from '../../engine/stop.ts'
import type { LocalPolicy } from '../../../../sdk/src/guard/rules.ts'
import type { TapePrompt } from '../tape/tape.ts'
import type { RunFacts, Verdict } from './run-facts.ts'

/** What makes two experiments the same. */
export interface ExperimentSettings {
  /** Of the runs: filters, or a dataset with its version. */
  runs: string
  limit: number
  environment: string
  command: readonly string[]
  prompts: TapePrompt[]
  /** Null: those of each tape. */
  policies: LocalPolicy[] | null
  ignore: readonly string[]
  readOnly: readonly string[]
  stubs: Record<string, unknown>
  measure: string | null
  timeoutSeconds: number
}

export interface ChosenRun {
  run: string
  /** In the folder. */
  tape: string
  checksum: string
  scores: Record<string, number>
}

export interface LeftOutRun {
  run: string
  why: string
}

export interface Experiment {
  experiment: 1
  name: string
  begunAt: string
  settings: ExperimentSettings
  chosen: ChosenRun[]
  leftOut: LeftOutRun[]
  /** More runs match than the limit. */
  hasMore: boolean
}

export interface RunResult {
  run: string
  before: RunFacts
  after: RunFacts
  /** Where it went another way. */
  way: { step: number; sentence: string } | null
  /** Of the user's own function. */
  measure: number | null
  verdict: Verdict
  seconds: number
  exitCode: number | null
  /** It took longer than it may. */
  isTimedOut: boolean
  /** Its run, with --record. */
  recorded: string | null
}

type LogLine = { spent: number; run: string; attempt: string } | { result: RunResult }

export class ExperimentFolder {
  readonly folder: string
  readonly #results = new Map<string, RunResult>()
  readonly #spent = new Map<string, number>()
  #log: number | undefined

  constructor(folder: string) {
    this.folder = folder
  }

  /** Null: there is none yet, or its runs are not chosen yet. */
  read(): Experiment | null {
    const file = path.join(this.folder, 'experiment.json')
    if (!existsSync(file)) return null
    const value = parsed(readFileSync(file, 'utf8'))
    if (!isObject(value) || value['experiment'] !== 1) throw failed(`${printable(file)} is no experiment.`)
    for (const line of logLines(path.join(this.folder, 'log.jsonl'))) {
      if ('result' in line) this.#results.set(line.result.run, this.#results.get(line.result.run) ?? line.result)
      else this.#spent.set(line.attempt, line.spent)
    }
    return value as unknown as Experiment
  }

  begin(experiment: Experiment): void {
    const file = path.join(this.folder, 'experiment.json')
    writeFileSync(`${file}.partial`, `${JSON.stringify(experiment, null, 2)}\n`, { flush: true, mode: 0o600 })
    renameSync(`${file}.partial`, file)
  }

  writeTape(name: string, text: string): string {
    mkdirSync(path.join(this.folder, 'tapes'), { recursive: true, mode: 0o700 })
    writeFileSync(path.join(this.folder, 'tapes', name), text, { mode: 0o600 })
    return path.join('tapes', name)
  }

  get results(): ReadonlyMap<string, RunResult> {
    return this.#results
  }

  /** Of all replays, also of those that were stopped or killed. */
  get spent(): number {
    return [...this.#spent.values()].reduce((total, one) => total + one, 0)
  }

  spend(run: string, attempt: string, spent: number): void {
    if (this.#spent.get(attempt) === spent) return
    this.#spent.set(attempt, spent)
    this.#append({ spent, run, attempt })
  }

  finish(result: RunResult): void {
    this.#append({ result })
    this.#results.set(result.run, result)
  }

  #append(line: LogLine): void {
    if (this.#log === undefined) {
      const file = path.join(this.folder, 'log.jsonl')
      this.#log = openSync(file, 'a', 0o600)
      // A line that was cut stays alone.
      if (/[^\n]$/.test(readFileSync(file, 'utf8'))) appendFileSync(this.#log, '\n')
    }
    appendFileSync(this.#log, `${JSON.stringify(line)}\n`)
    fsyncSync(this.#log)
  }
}

function logLines(file: string): LogLine[] {
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => {
      const value = parsed(line)
      return isObject(value) ? [value as unknown as LogLine] : []
    })
}

/** Undefined: a line that was cut. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** The first setting that differs; undefined: none does. */
export function otherSetting(one: ExperimentSettings, other: ExperimentSettings): string | undefined {
  return Object.keys(other).find((name) => {
    const key = name as keyof ExperimentSettings
    return JSON.stringify(one[key]) !== JSON.stringify(other[key])
  })
}
