/** A benchmark and the setting in which it runs. */
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
  /** Paragraphs about what is measured and how, in addition to the part's text. */
  about: readonly string[]
  /** The other side of the comparison, if it is not the bare limit. */
  beside?: string
  /** Runs only with --full. */
  onDemand?: boolean
  run(setting: Setting): Promise<Result>
}

export interface Setting {
  plan: Plan
  /** An empty folder for this benchmark. */
  place: string
  /** Reports progress. */
  say(line: string): void
}
