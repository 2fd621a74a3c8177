/** Entity tags (RFC 9110 8.8.3). */

// What stands between the quotes may hold commas.
const TAG = /(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g

/**
 * Whether If-None-Match names the tag: one, a list, or `*`. Compared weakly (RFC 9110 13.1.2): caches and proxies turn
 * strong tags into weak ones, and some clients drop the mark.
 */
export function matchesTag(ifNoneMatch: string | undefined, tag: string): boolean {
  if (ifNoneMatch === undefined) return false
  if (ifNoneMatch === tag || ifNoneMatch.trim() === '*') return true
  const opaque = tag.replace(/^W\//, '')
  for (const [, given] of ifNoneMatch.matchAll(TAG)) if (given === opaque) return true
  return false
}
