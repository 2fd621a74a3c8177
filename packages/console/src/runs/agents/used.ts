/** What runs used, with the number of runs for each name, the most used first. Pure. */
export function usedBy<Run>(runs: readonly Run[], namesOf: (run: Run) => readonly string[]): [string, number][] {
  const counts = new Map<string, number>()
  for (const run of runs) for (const name of namesOf(run)) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1))
}
