/** What a benchmark is, and what it is given. */
import type { PartName } from './parts.ts'
import type { Plan } from './plan.ts'
import type { Result } from './result.ts'

export interface Benchmark {
  /** As on the command line. */
  name: string
  /** Heading on the page. */
  title: string
  /** Part of the page. */
  part: PartName
  /** What is measured and how, beyond what the page says of its part; paragraphs. */
  about: readonly string[]
  /** Only on demand, with --full. */
  onDemand?: boolean
  run(setting: Setting): Promise<Result>
}

export interface Setting {
  plan: Plan
  /** An empty folder of its own. */
  place: string
  /** Says how far it is. */
  say(line: string): void
}

/** Runs whatever ends what was started, in reverse order, when `work` is over in whatever way. */
export async function withEnds<T>(work: (end: (how: () => Promise<void> | void) => void) => Promise<T>): Promise<T> {
  const ends: (() => Promise<void> | void)[] = []
  try {
    return await work((how) => ends.push(how))
  } finally {
    for (const how of ends.toReversed()) await how()
  }
}
