/** Which good run a failed one can be compared with: it was asked the same kind of thing, and called the same tools. Pure. */

/** From 0 to 1: the words of two questions that both have. Ids and amounts say which order it was, not what was asked. */
export function questionLikeness(a: string | null, b: string | null): number {
  const [words, others] = [wordsOf(a), wordsOf(b)]
  const all = words.union(others).size
  if (all === 0) return a !== null && a === b ? 1 : 0
  return words.intersection(others).size / all
}

const wordsOf = (title: string | null): Set<string> =>
  new Set(
    title
      ?.toLowerCase()
      .replaceAll(/[\p{L}\p{N}_#-]*\p{N}[\p{L}\p{N}_-]*/gu, ' ')
      .match(/\p{L}+/gu),
  )

/** From 0 to 1: how far the calls before a failure are those that another run began with, in this order. */
export function callsLikeness(before: readonly string[], calls: readonly string[]): number {
  if (before.length === 0) return 1
  const same = before.findIndex((name, place) => calls[place] !== name)
  return same === -1 ? 1 : same / before.length
}

interface Row {
  eventId: string
  eventType: string
  label: string
}

/** The tools that a run called, in order; with the id of its failure, those before it. */
export function callsOf(rows: readonly Row[], failureId?: string): string[] {
  const end = rows.findIndex(({ eventId }) => eventId === failureId)
  const before = end === -1 ? rows : rows.slice(0, end)
  const calls = before.filter(({ eventType }) => eventType === 'TOOL_CALL').map(({ label }) => label)
  return calls
}

/** Below this, two questions are not called the same. */
export const LEAST_QUESTION = 0.5
const OFFERED = 3

export interface Candidate<Run> {
  run: Run
  question: number
  calls: number
}

/** The one that is good to compare with; or null, and the most alike ones. `runs`: the newest first. */
export function comparableRuns<Run extends { title: string | null }>(
  failed: { title: string | null; calls: readonly string[] },
  runs: readonly { run: Run; calls: readonly string[] }[],
): { good: Run | null; candidates: Candidate<Run>[] } {
  const candidates = runs
    .map(({ run, calls }) => ({
      run,
      question: questionLikeness(failed.title, run.title),
      calls: callsLikeness(failed.calls, calls),
    }))
    .sort((a, b) => b.calls + b.question - a.calls - a.question)
  const good = candidates.find(({ question, calls }) => calls === 1 && question >= LEAST_QUESTION)
  return { good: good?.run ?? null, candidates: candidates.slice(0, OFFERED) }
}
