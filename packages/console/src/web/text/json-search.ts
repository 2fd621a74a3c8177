/** Finds a text in a JSON value. Pure. */

export interface JsonHit {
  /** Path in JavaScript notation: `input.items[2].id`. */
  path: string
  value: unknown
}

export interface JsonHits {
  hits: JsonHit[]
  /** The search covered only a part of the value, or found more hits than are listed. */
  isCut: boolean
}

const HITS = 50
/** Maximum number of names and values to compare. */
const LOOKED_AT = 20_000
const TEXT_CHARS = 65_536

const NAME = /^[A-Za-z_$][\w$]*$/

/** The path of a member. `parent` is empty for the value itself. */
export function pathOf(parent: string, key: string, isIndex: boolean): string {
  if (isIndex) return `${parent}[${key}]`
  if (!NAME.test(key)) return `${parent}[${JSON.stringify(key)}]`
  return parent === '' ? key : `${parent}.${key}`
}

/**
 * Finds names and single values that contain the text, in any case. Not recursive, because values may be nested deeply.
 */
export function searchJson(value: unknown, text: string): JsonHits {
  const sought = text.trim().toLowerCase()
  const hits: JsonHit[] = []
  const open: { path: string; name: string; value: unknown }[] = [{ path: '', name: '', value }]
  for (let count = 0; ; count++) {
    const next = open.pop()
    if (next === undefined) return { hits, isCut: false }
    if (count === LOOKED_AT || hits.length === HITS) return { hits, isCut: true }
    const { path, name, value } = next
    const isBranch = typeof value === 'object' && value !== null
    const searchedText = isBranch ? name : `${name}\n${leafText(value).slice(0, TEXT_CHARS)}`
    if (searchedText.toLowerCase().includes(sought)) hits.push({ path, value })
    if (!isBranch) continue
    const isIndex = Array.isArray(value)
    const parts = Object.entries(value).map(([key, part]) => {
      return { path: pathOf(path, key, isIndex), name: isIndex ? '' : key, value: part as unknown }
    })
    for (const innerPart of parts.toReversed()) open.push(innerPart)
  }
}

const leafText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
