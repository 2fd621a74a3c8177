/** Reads the query of an address. What is not a text is left out: anyone can write an address. */
export function textOf<Name extends string>(
  search: Readonly<Record<string, unknown>>,
  names: readonly Name[],
): { [N in Name]?: string } {
  const found: { [N in Name]?: string } = {}
  for (const name of names) {
    const value = Object.hasOwn(search, name) ? search[name] : undefined
    // The router reads digits as a number.
    if (typeof value === 'number' || typeof value === 'boolean') found[name] = String(value)
    else if (typeof value === 'string' && value !== '') found[name] = value
  }
  return found
}
