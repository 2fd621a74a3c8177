/** A row that another transaction inserts at the same time is found after `store`. */
export async function findOrStore<Wanted, Found>(
  wanted: ReadonlyMap<string, Wanted>,
  find: (one: Wanted) => Promise<Found | null>,
  store: (missing: Wanted[]) => Promise<void>,
): Promise<Map<string, Found>> {
  const found = new Map<string, Found>()
  const missing = () => [...wanted].filter(([place]) => !found.has(place))
  const look = async ([place, one]: [string, Wanted]) => {
    const row = await find(one)
    if (row !== null) found.set(place, row)
  }
  await Promise.all(missing().map(look))
  if (found.size === wanted.size) return found
  await store(missing().map(([, one]) => one))
  await Promise.all(missing().map(look))
  if (found.size < wanted.size) throw new Error('A stored row is missing')
  return found
}
