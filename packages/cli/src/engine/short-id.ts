/** Short forms of ids, which commands accept in place of the whole ids. Pure. */

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const LEAST_CHARS = 8
const CUT = '…'

/** UUIDs as their shortest beginnings that differ, at least 8 characters. Other ids stay. */
export function shortIds(ids: readonly string[]): string[] {
  const uuids = new Set(ids.filter((id) => UUID.test(id)))
  let size = LEAST_CHARS
  while (size < 36 && new Set([...uuids].map((id) => id.slice(0, size))).size < uuids.size) size += 1
  return ids.map((id) => (uuids.has(id) ? id.slice(0, size) : id))
}

/** Whether the text is the id, its beginning, or its beginning and end as a table shows it: `order-…4711`. */
export function isShortFor(given: string, id: string): boolean {
  const at = given.indexOf(CUT)
  if (at === -1) return id.startsWith(given)
  const [start, end] = [given.slice(0, at), given.slice(at + CUT.length)]
  return id.length >= start.length + end.length && id.startsWith(start) && id.endsWith(end)
}

/** The beginning of an id that `isShortFor` accepts. */
export function beginningOf(given: string): string {
  return given.split(CUT, 1)[0] ?? ''
}
