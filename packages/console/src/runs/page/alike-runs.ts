/** Which of some runs was asked the same, or nearly. Pure. */

/** The first of those whose title shares the most words with this one; null: there is none. */
export function mostAlike<Run extends { title: string | null }>(
  title: string | null,
  runs: readonly Run[],
): Run | null {
  const words = wordsOf(title)
  let best: { run: Run; share: number } | null = null
  for (const run of runs) {
    const others = wordsOf(run.title)
    const all = words.union(others).size
    const share = run.title === title ? 2 : all === 0 ? 0 : words.intersection(others).size / all
    if (best === null || share > best.share) best = { run, share }
  }
  return best?.run ?? null
}

/** Numbers say which order it was, not what was asked. */
const wordsOf = (title: string | null): Set<string> => new Set(title?.toLowerCase().match(/\p{L}+/gu))
