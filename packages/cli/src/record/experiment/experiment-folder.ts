/**
 * An experiment on disk. Its folder contains `experiment.json` (the runs and settings, written when all tapes are
 * there), `tapes`, and `log.jsonl`, with a line for each result and for the cost of each replay so far. So a killed
 * experiment continues with the runs that have no result, and knows what it has spent.
 *
 *   choosing --experiment.json is written--> replaying --each run has a result--> complete
 *   killed while choosing: begins anew; killed while replaying: replays that have no result begin anew
 */
import { randomUUID } from 'node:crypto'
import {
  appendFileSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import type { ToolLabel } from '@tacho/contract/policies/tool-labels.ts'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { printable } from '../../engine/output.ts'
import { failed } from '../../engine/stop.ts'
import type { LocalPolicy } from '../../../../sdk/src/guard/rules.ts'
import type { TapePrompt } from '../tape/tape.ts'
import type { RunFacts, Verdict } from './run-facts.ts'

/** Settings of an experiment. Two experiments with the same settings are the same. */
export interface ExperimentSettings {
  /** The chosen runs: filters, or a dataset with its version. */
  runs: string
  limit: number
  environment: string
  command: readonly string[]
  prompts: TapePrompt[]
  /** Null: each tape uses its own policies. */
  policies: LocalPolicy[] | null
  labels: readonly ToolLabel[] | null
  ignore: readonly string[]
  readOnly: readonly string[]
  stubs: Record<string, unknown>
  measure: string | null
  timeoutSeconds: number
}

export interface ChosenRun {
  run: string
  /** File name of the tape in the folder. */
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
  /** The step at which the replay left the tape, and a sentence about it. */
  way: { step: number; sentence: string } | null
  /** Result of the user's own function. */
  measure: number | null
  verdict: Verdict
  seconds: number
  exitCode: number | null
  /** The replay exceeded its time limit. */
  isTimedOut: boolean
  /** Id of the run that recorded the replay, with --record. */
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

  /** The experiment; null if the folder is new, or its runs are not chosen yet. */
  read(): Experiment | null {
    const file = path.join(this.folder, 'experiment.json')
    if (!existsSync(file)) return null
    const value = parsed(ownText(file))
    if (!isExperiment(value)) throw failed(`${printable(file)} is no experiment.`)
    const log = path.join(this.folder, 'log.jsonl')
    for (const line of logLines(log)) {
      if (isResult(line['result'])) {
        const { result } = line
        this.#results.set(result.run, this.#results.get(result.run) ?? result)
      } else if (isSpending(line)) this.#spent.set(line.attempt, line.spent)
      else throw failed(`${printable(log)} has a line that no experiment writes.`)
    }
    return value
  }

  begin(experiment: Experiment): void {
    this.write('experiment.json', `${JSON.stringify(experiment, null, 2)}\n`)
  }

  writeTape(name: string, text: string): string {
    const tapes = path.join(this.folder, 'tapes')
    mkdirSync(tapes, { recursive: true, mode: 0o700 })
    if (!lstatSync(tapes).isDirectory()) throw failed(`${printable(tapes)} is a link.`)
    this.write(path.join('tapes', name), text)
    return path.join('tapes', name)
  }

  /** Writes a file as a whole or not at all, and never through a link, which somebody else may have put there. */
  write(name: string, text: string): void {
    const file = path.join(this.folder, name)
    const partial = `${file}.${randomUUID()}.partial`
    try {
      writeFileSync(partial, text, { flag: 'wx', flush: true, mode: 0o600 })
      renameSync(partial, file)
    } finally {
      rmSync(partial, { force: true })
    }
  }

  /** Locks the folder until this process ends. @throws Stop while another process works in it. */
  lock(): void {
    const file = path.join(this.folder, 'lock')
    for (let times = 0; times < 3; times++) {
      try {
        writeFileSync(file, `${process.pid}\n`, { flag: 'wx', mode: 0o600 })
        process.once('exit', () => rmSync(file, { force: true }))
        return
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
      const held = heldBy(file)
      if (held !== undefined && isAlive(held))
        throw failed(`Process ${held} works in ${printable(this.folder)}: wait for it, or give another --name.`)
      // Rename the lock of a dead process. Only one of several processes succeeds.
      const dead = `${file}.${randomUUID()}`
      try {
        renameSync(file, dead)
      } catch {
        continue
      }
      const taken = heldBy(dead)
      if (taken !== held) renameSync(dead, file)
      else rmSync(dead, { force: true })
    }
    throw failed(`${printable(file)} cannot be had: another process works in the folder.`)
  }

  get results(): ReadonlyMap<string, RunResult> {
    return this.#results
  }

  /** The sum over all replays, including those that were stopped or killed. */
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
      const before = existsSync(file) ? ownText(file) : ''
      this.#log = openSync(file, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | NO_FOLLOW, 0o600)
      // Begin a new line after an incomplete one.
      if (/[^\n]$/.test(before)) appendFileSync(this.#log, '\n')
    }
    appendFileSync(this.#log, `${JSON.stringify(line)}\n`)
    fsyncSync(this.#log)
  }
}

/** Flags against following links and waiting for pipes. Windows has neither. */
const NO_FOLLOW = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

/** The text of a regular file. @throws Stop for a link, a pipe or a device. */
function ownText(file: string): string {
  if (!lstatSync(file).isFile()) throw failed(`${printable(file)} is no regular file.`)
  const opened = openSync(file, constants.O_RDONLY | NO_FOLLOW)
  try {
    return readFileSync(opened, 'utf8')
  } finally {
    closeSync(opened)
  }
}

/** The process id in a lock; undefined if there is no valid one. */
function heldBy(lock: string): number | undefined {
  try {
    const pid = Number(ownText(lock))
    return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined
  } catch {
    return undefined
  }
}

function isAlive(pid: number): boolean {
  // After a restart of a container, an earlier process may have had the same id as this one.
  if (pid === process.pid) return false
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function logLines(file: string): Record<string, unknown>[] {
  if (!existsSync(file)) return []
  return ownText(file)
    .split('\n')
    .flatMap((line) => {
      const value = parsed(line)
      return isObject(value) ? [value] : []
    })
}

const isAmount = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value) && value >= 0
const isText = (value: unknown): value is string => typeof value === 'string'

function isSpending(
  line: Record<string, unknown>,
): line is Record<string, unknown> & { spent: number; attempt: string } {
  return isAmount(line['spent']) && isText(line['attempt'])
}

function isResult(value: unknown): value is RunResult {
  return (
    isObject(value) &&
    isText(value['run']) &&
    isText(value['verdict']) &&
    [value['before'], value['after']].every(isFacts)
  )
}

function isFacts(value: unknown): boolean {
  if (!isObject(value)) return false
  const { outcome, steps, tokens, cost, modelMs, scores } = value
  return (
    isText(outcome) && [steps, tokens ?? 0, cost ?? 0].every(isAmount) && Number.isFinite(modelMs) && isObject(scores)
  )
}

function isExperiment(value: unknown): value is Experiment & Record<string, unknown> {
  if (!isObject(value) || value['experiment'] !== 1 || !isText(value['name']) || !isObject(value['settings']))
    return false
  const { chosen, leftOut } = value
  const isLeftOut = (one: unknown) => isObject(one) && isText(one['run']) && isText(one['why'])
  return Array.isArray(chosen) && chosen.every(isChosen) && Array.isArray(leftOut) && leftOut.every(isLeftOut)
}

function isChosen(value: unknown): boolean {
  if (!isObject(value) || !isText(value['run']) || !isText(value['checksum']) || !isObject(value['scores']))
    return false
  return isText(value['tape']) && /^tapes[/\\][^/\\]+$/.test(value['tape'])
}

/** The line's JSON; undefined for an incomplete line. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** The name of the first setting that differs; undefined if all are equal. */
export function otherSetting(one: ExperimentSettings, other: ExperimentSettings): string | undefined {
  return Object.keys(other).find((name) => {
    const key = name as keyof ExperimentSettings
    return JSON.stringify(one[key]) !== JSON.stringify(other[key])
  })
}
