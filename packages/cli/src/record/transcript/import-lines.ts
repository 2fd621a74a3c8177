/** Imports a stream of transcript lines, a few at a time, in bounded memory. */
import type { Recorder } from '../recorder-client.ts'
import { lines, type Line } from '../../engine/files.ts'
import { noteProblems, spokenTrouble, type ImportReport, type LineProblem } from './import-report.ts'
import {
  draftRun,
  needsBase,
  timedEvents,
  timesOf,
  type ImportOptions,
  type RunDraft,
  type StoredEvent,
} from './run-draft.ts'
import { readTranscript } from './transcript.ts'
import { wrongUsage } from '../../engine/stop.ts'

/** Longer lines are skipped. */
export const LONGEST_LINE_BYTES = 32 * 1024 ** 2
const RUNS_AT_ONCE = 4
/** First lines of indented JSON. */
const DOCUMENT_STARTS = ['[', '{', '[{']
/** Maximum number of hashes that are kept to detect repeated lines. */
const REMEMBERED_LINES = 100_000

export interface Import {
  options: ImportOptions
  /** Null: a dry run that sends nothing. */
  recorder: Recorder | null
  now: number
  /** Called for each problem, up to the limit of named problems. */
  onProblem: (problem: LineProblem) => void
  /** Called with the bytes of each finished line. */
  onProgress: (bytes: number) => void
}

/** Fills in the report. Rejects if the server keeps failing; the report then covers the lines done so far. */
export async function importLines(
  stream: AsyncIterable<Uint8Array>,
  report: ImportReport,
  importOptions: Import,
): Promise<void> {
  const gate = new Gate(RUNS_AT_ONCE, LONGEST_LINE_BYTES)
  const seen = new Set<string>()
  try {
    for await (const line of lines(stream, LONGEST_LINE_BYTES)) {
      const bytes = 'bytes' in line ? line.bytes.length : LONGEST_LINE_BYTES
      if ('bytes' in line && isBlank(line.bytes)) continue
      if (report.lines === 0 && 'bytes' in line && DOCUMENT_STARTS.includes(line.bytes.toString('latin1').trim())) {
        throw wrongUsage(
          "The file is one JSON document. --format openai reads one JSON object per line, such as `jq -c '.[]'` makes of a list.",
        )
      }
      await gate.enter(bytes, async () => {
        const problems = await importLine(line, report, seen, importOptions)
        if (problems.length > 0 && noteProblems(report, line.number, problems)) {
          importOptions.onProblem({ line: line.number, problem: problems.join('; ') })
        }
        importOptions.onProgress(bytes + 1)
      })
    }
    await gate.empty()
    report.finished = true
  } finally {
    await gate.empty().catch(() => {})
    report.problems.sort((one, other) => one.line - other.line)
  }
}

/** Returns the problems of the line. */
async function importLine(
  line: Line,
  report: ImportReport,
  seen: Set<string>,
  importOptions: Import,
): Promise<string[]> {
  report.lines += 1
  if ('tooLong' in line) return [`it is longer than ${LONGEST_LINE_BYTES / 1024 ** 2} MiB and was skipped`]
  const read = readTranscript(line.bytes)
  if (!read.ok) return [read.problem]
  if (isRepeated(read.transcript.hash, seen)) {
    report.repeatedLines += 1
    return []
  }
  const run = draftRun(read.transcript, importOptions.options)
  report.runs += 1
  report.events += run.events.length
  if (needsBase(run, importOptions.now)) report.generatedTimes += 1
  if (run.isClosed) report.closedRuns += 1
  if (importOptions.recorder === null) return run.problems
  const times = timesOf(run, importOptions.now, await storedEvent(run, importOptions.recorder, importOptions.now))
  const recorded = await importOptions.recorder.record(timedEvents(run, times, importOptions.options))
  report.acceptedEvents += recorded.accepted
  report.rejectedEvents += recorded.refused.length
  return [...run.problems, ...spokenTrouble(recorded)]
}

/** The first stored event of an earlier import: a continued import must use the same generated base time. */
async function storedEvent(run: RunDraft, recorder: Recorder, now: number): Promise<StoredEvent | null> {
  if (!needsBase(run, now)) return null
  const first = await recorder.firstEvent(run.runId)
  return first && { eventId: first.eventId, time: Date.parse(first.timestamp) }
}

function isRepeated(hash: string, seen: Set<string>): boolean {
  if (seen.has(hash)) return true
  if (seen.size === REMEMBERED_LINES) for (const oldest of seen.values().take(1)) seen.delete(oldest)
  seen.add(hash)
  return false
}

function isBlank(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d)
}

/** Limits the number and the total size of running tasks. */
class Gate {
  readonly #mostTasks: number
  readonly #mostBytes: number
  readonly #running = new Set<Promise<void>>()
  #bytes = 0
  #failure: { error: unknown } | null = null

  constructor(mostTasks: number, mostBytes: number) {
    this.#mostTasks = mostTasks
    this.#mostBytes = mostBytes
  }

  /** Resolves when the task has started. Rejects if an earlier one has failed. */
  async enter(bytes: number, task: () => Promise<void>): Promise<void> {
    while (this.#isFull(bytes)) await Promise.race(this.#running)
    if (this.#failure) throw this.#failure.error
    this.#bytes += bytes
    const running = this.#run(bytes, task).finally(() => this.#running.delete(running))
    this.#running.add(running)
  }

  /** Resolves when all tasks have finished. Rejects if one has failed. */
  async empty(): Promise<void> {
    await Promise.all(this.#running)
    if (this.#failure) throw this.#failure.error
  }

  /** A task larger than the limit runs alone. */
  #isFull(bytes: number): boolean {
    if (this.#running.size === 0) return false
    return this.#running.size >= this.#mostTasks || this.#bytes + bytes > this.#mostBytes
  }

  async #run(bytes: number, task: () => Promise<void>): Promise<void> {
    try {
      await task()
    } catch (error) {
      this.#failure ??= { error }
    } finally {
      this.#bytes -= bytes
    }
  }
}
