/** What a list on screen does not show yet. Pure. */

interface Listed {
  id: string
}

/**
 * The rows in their places, each as it is now; the number of rows that have come since, and of those that match no longer.
 *
 * @param newest the first page as it is now.
 */
export function newsOf<Row extends Listed>(shown: readonly Row[], newest: readonly Row[]) {
  const now = new Map(newest.map((row) => [row.id, row]))
  const items = shown.map((row) => now.get(row.id) ?? row)
  const known = new Set(shown.map(({ id }) => id))
  // Rows after the last known one are older: the list shows them further down.
  const last = newest.findLastIndex(({ id }) => known.has(id))
  const until = shown.length === 0 ? newest.length : last + 1
  const isReplaced = shown.length > 0 && last < 0
  const news = newest.slice(0, isReplaced ? newest.length : until).filter(({ id }) => !known.has(id)).length
  // Rows after the last one that is still there may lie behind the end of the page.
  const end = shown.findLastIndex(({ id }) => now.has(id))
  const gone = shown.slice(0, end + 1).filter(({ id }) => !now.has(id)).length
  return { items, news, gone }
}
