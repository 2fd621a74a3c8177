import path from 'node:path'

/** The module of a thread, next to the caller: `moduleUrl('reader', import.meta.url)`. Sources end in .ts, a build in .js. */
export function moduleUrl(name: string, caller: string): URL {
  return new URL(`./${name}${path.extname(caller)}`, caller)
}
