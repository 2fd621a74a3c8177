/** A benchmark and its setting. */
import type { PartName } from './parts.ts'
import type { Plan } from './plan.ts'
import type { Result } from './result.ts'

export interface Benchmark {
  /** Its name on the command line. */
  name: string
  /** Its heading on the page. */
  title: string
  /** The part of the page that shows it. */
  part: PartName
  /** Paragraphs: what is measured and how, in addition to the text of the part. */
  about: readonly string[]
  /** What stands beside our figures, if it is not the bare limit. */
  beside?: string
  /** Runs only with --full. */
  onDemand?: boolean
  run(setting: Setting): Promise<Result>
}

export interface Setting {
  plan: Plan
  /** An empty folder for this benchmark alone. */
  place: string
  /** Reports progress. */
  say(line: string): void
}
