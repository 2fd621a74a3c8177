/** Keeps count of an import: what was done, and what could not be taken over as it stood. */
import { counted, printable, spokenNumber } from '../output.ts'
import type { RefusedEvent } from '../recorder-client.ts'

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
  /** Lines read, empty ones not counted. */
  lines: number
  runs: number
  /** Lines that stood in the file before, to the byte: they are the same run. */
  repeatedLines: number
  events: number
  /** Stored now or by an earlier import; the service does not tell which. */
  acceptedEvents: number
  rejectedEvents: number
  /** Lines with a problem. */
  problemLines: number
  /** The first of them, in the order of the file. */
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
    repeatedLines: 0,
    events: 0,
    acceptedEvents: 0,
    rejectedEvents: 0,
    problemLines: 0,
    problems: [],
  }
}

/** Notes what is wrong with a line. False: there are too many to name. */
export function noteProblems(report: ImportReport, line: number, problems: readonly string[]): boolean {
  report.problemLines += 1
  if (report.problemLines > MOST_PROBLEMS) return false
  report.problems.push({ line, problem: problems.join('; ') })
  return true
}

export function spokenProblem({ line, problem }: LineProblem): string {
  return `line ${line}: ${printable(problem)}.`
}

/** Refused events by reason, each half a sentence. */
export function spokenRefusals(refused: readonly RefusedEvent[]): string[] {
  const byCode = Map.groupBy(refused, ({ code }) => code)
  return [...byCode].map(([code, events]) => {
    const message = events[0]?.message.replace(/\.$/, '') ?? ''
    return `the service refused ${counted(events.length, 'event')}: ${message} (${code})`
  })
}

/** The summary for people. */
export function spokenReport(report: ImportReport): string[] {
  const { runs, events, acceptedEvents, rejectedEvents, repeatedLines, problemLines } = report
  const found = `${counted(runs, 'run')} with ${counted(events, 'event')}`
  const done = report.dryRun
    ? `${found} would be recorded; nothing was sent.`
    : `${found}: ${spokenNumber(acceptedEvents)} stored (now or by an earlier import), ${spokenNumber(rejectedEvents)} refused.`
  return [
    done,
    ...(repeatedLines > 0 ? [`${counted(repeatedLines, 'line')} stood in the file before and added nothing.`] : []),
    ...(problemLines > 0 ? [`${counted(problemLines, 'line')} could not be taken over as they stand.`] : []),
    ...(report.finished ? [] : ['The import stopped early: run the same command again, it goes on where it stopped.']),
  ]
}
