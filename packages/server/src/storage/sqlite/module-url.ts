import path from 'node:path'

/** A module of this folder that is a thread of its own. The sources end in .ts, what is published in .js. */
export function moduleUrl(name: 'writer' | 'reader' | 'maintenance'): URL {
  return new URL(`./${name}${path.extname(import.meta.url)}`, import.meta.url)
}
