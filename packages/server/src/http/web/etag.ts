// RFC 9110 8.8.3: a tag can contain commas between its quotes.
const TAG = /(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g

/** Weak comparison (RFC 9110 13.1.2), because caches weaken strong tags and some clients drop the mark. */
export function matchesTag(ifNoneMatch: string | undefined, tag: string): boolean {
  if (ifNoneMatch === undefined) return false
  if (ifNoneMatch === tag || ifNoneMatch.trim() === '*') return true
  const opaque = tag.replace(/^W\//, '')
  for (const [, given] of ifNoneMatch.matchAll(TAG)) if (given === opaque) return true
  return false
}
