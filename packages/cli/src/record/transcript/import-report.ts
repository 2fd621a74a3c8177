/** Counts the results and the problems of an import. */
import { counted, printable, spokenNumber } from '../../engine/output.ts'
import { hashedBase } from './times.ts'
import type { Recorded, RefusedEvent } from '../recorder-client.ts'

export interface LineProblem {
  line: number
  problem: string
}

/** The JSON form of `tacho import --json`. */
export interface ImportReport {
  file: string
  dryRun: boolean
  /** False when the import stopped before the end of the file. */
  finished: boolean
  /** Lines read, without empty ones. */
  lines: number
  runs: number
  /** Null: no run, or a format whose run ids do not begin with `--run-prefix`. */
  firstRunId: string | null
  /** Lines that are equal to an earlier one, so their run is the same. */
  repeatedLines: number
  events: number
  /** Runs with generated times, because their lines have no usable ones. */
  generatedTimes: number
  /** Runs without an outcome, or traces without a root, that the import ended. */
  closedRuns: number
  /** Stored now or by an earlier import; the server does not say which. */
  acceptedEvents: number
  rejectedEvents: number
  /** Lines with a problem. */
  problemLines: number
  /** The first problems, in file order. */
  problems: LineProblem[]
}

const MOST_PROBLEMS = 1_000

export function newReport(file: string, dryRun: boolean): ImportReport {
  return {
    file,
    dryRun,
    finished: false,
    lines: 0,
    runs: 0,
    firstRunId: null,
    repeatedLines: 0,
    events: 0,
    generatedTimes: 0,
    closedRuns: 0,
    acceptedEvents: 0,
    rejectedEvents: 0,
    problemLines: 0,
    problems: [],
  }
}

/** Adds a problem of a line. False if the list of problems is full. */
export function noteProblems(report: ImportReport, line: number, problems: readonly string[]): boolean {
  report.problemLines += 1
  if (report.problemLines > MOST_PROBLEMS) return false
  report.problems.push({ line, problem: problems.join('; ') })
  return true
}

export function spokenProblem({ line, problem }: LineProblem): string {
  return `line ${line}: ${printable(problem)}.`
}

/** Counts of rejections by reason, each as part of a sentence. */
export function spokenTrouble({ refused, uncounted }: Pick<Recorded, 'refused' | 'uncounted'>): string[] {
  return [...byReason('rejected', refused), ...byReason('cannot count all of', uncounted)]
}

function byReason(act: string, events: readonly RefusedEvent[]): string[] {
  return [...Map.groupBy(events, ({ code }) => code)].map(([code, ofCode]) => {
    const message = ofCode[0]?.message.replace(/\.$/, '') ?? ''
    return `the server ${act} ${counted(ofCode.length, 'event')}: ${message} (${code})`
  })
}

export function spokenReport(
  report: ImportReport,
  { format, runPrefix }: { format: string; runPrefix: string },
  formats: readonly string[],
): string[] {
  const {
    runs,
    events,
    acceptedEvents,
    rejectedEvents,
    repeatedLines,
    problemLines,
    generatedTimes,
    closedRuns,
    firstRunId,
  } = report
  const others = formats.filter((name) => name !== format)
  const sought =
    firstRunId === null ? `list --search ${JSON.stringify(runPrefix)}` : `show ${JSON.stringify(firstRunId)}`
  const countText = `${counted(runs, 'run')} with ${counted(events, 'event')}`
  const done = report.dryRun
    ? `${countText} would be recorded; nothing was sent.`
    : `${countText}: ${spokenNumber(acceptedEvents)} are stored, by this import or an earlier one; ${spokenNumber(rejectedEvents)} rejected.`
  return [
    done,
    ...(repeatedLines > 0 ? [`${counted(repeatedLines, 'line')} repeated earlier lines and added nothing.`] : []),
    ...(generatedTimes > 0 ? [madeUpText(generatedTimes, runs)] : []),
    ...(closedRuns > 0 ? [`${counted(closedRuns, 'run')} had no outcome: closed at the last recorded time.`] : []),
    ...(problemLines > 0 ? [`${counted(problemLines, 'line')} had problems.`] : []),
    ...(report.finished ? [] : ['The import stopped early: run the same command again to continue.']),
    ...(runs === 0 && problemLines > 0
      ? [`The file was read as ${format}. Is it another format? Name it: --format ${others.join(', ')}.`]
      : []),
    ...(report.dryRun || acceptedEvents === 0 ? [] : [`Look: \`tacho runs ${sought}\`.`]),
  ]
}

function madeUpText(count: number, runs: number): string {
  const which = count === runs ? 'all runs' : counted(count, 'run')
  const day = new Date(hashedBase('0', Date.now())).toISOString().slice(0, 10)
  return `The times of ${which} are made up, because the messages have no usable times: on ${day} (UTC), one second apart.`
}
