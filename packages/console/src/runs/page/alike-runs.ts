/** Finds successful runs to compare a failed run with: with a similar question and the same tools. Pure. */

/**
 * Similarity of two questions, from 0 to 1: the share of common words, without ids and amounts, which differ between
 * orders.
 */
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

/**
 * From 0 to 1: how many of the calls before a failure are also the first calls of another run, in this order.
 * Consecutive calls of one tool count as one, because a failing tool is called repeatedly, but not in a successful run.
 */
export function callsLikeness(before: readonly string[], calls: readonly string[]): number {
  const [wanted, others] = [inTurn(before), inTurn(calls)]
  if (wanted.length === 0) return 1
  const same = wanted.findIndex((name, place) => others[place] !== name)
  return same === -1 ? 1 : same / wanted.length
}

const inTurn = (calls: readonly string[]): string[] => calls.filter((name, place) => name !== calls[place - 1])

/** The first `count` runs for each question; questions with the same words count as one. */
function ofEachQuestion<Item>(items: readonly Item[], titleOf: (item: Item) => string | null, count: number): Item[] {
  const seen = new Map<string, number>()
  return items.filter((item) => {
    const words = [...wordsOf(titleOf(item))].sort().join(' ')
    const times = (seen.get(words) ?? 0) + 1
    seen.set(words, times)
    return times <= count
  })
}

const OF_A_QUESTION = 3

/** The runs worth reading: those with the most similar questions, but not all with the same question. */
export function likelyRuns<Run extends { title: string | null }>(
  title: string | null,
  runs: readonly Run[],
  count: number,
): Run[] {
  const sorted = runs.toSorted((a, b) => questionLikeness(title, b.title) - questionLikeness(title, a.title))
  return ofEachQuestion(sorted, (run) => run.title, OF_A_QUESTION).slice(0, count)
}

interface Row {
  eventId: string
  eventType: string
  label: string
}

/** The tools that a run called, in order; with `failureId`, those before that event. */
export function callsOf(rows: readonly Row[], failureId?: string): string[] {
  const end = rows.findIndex(({ eventId }) => eventId === failureId)
  const before = end === -1 ? rows : rows.slice(0, end)
  const calls = before.filter(({ eventType }) => eventType === 'TOOL_CALL').map(({ label }) => label)
  return calls
}

/** Below this similarity, two questions count as different. */
export const LEAST_QUESTION = 0.5
const OFFERED = 3

export interface Candidate<Run> {
  run: Run
  question: number
  calls: number
}

/** The run to compare with; or null and the most similar runs. `runs`: newest first. */
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
  const firsts = ofEachQuestion(candidates, ({ run }) => run.title, 1)
  const others = candidates.filter((candidate) => !firsts.includes(candidate))
  return { good: good?.run ?? null, candidates: [...firsts, ...others].slice(0, OFFERED) }
}
