export function nearestName(given: string, known: readonly string[]): string | null {
  let best: string | null = null
  let bestDistance = Math.floor(given.length / 3) + 1
  for (const name of known) {
    const distance = levenshtein(given, name)
    if (distance < bestDistance) [best, bestDistance] = [name, distance]
  }
  return best
}

function levenshtein(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, column) => column)
  for (let line = 1; line <= one.length; line++) {
    const next = [line]
    for (let column = 1; column <= other.length; column++) {
      const changed = (row[column - 1] ?? 0) + (one[line - 1] === other[column - 1] ? 0 : 1)
      next.push(Math.min(changed, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[other.length] ?? 0
}
