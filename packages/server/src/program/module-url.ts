import path from 'node:path'

/** Only in the built program (scripts/build-program.mjs). */
declare const TACHO_BUILD: string | undefined

/** Among the sources, the module is next to the caller. The build has all modules in one folder. */
export function moduleUrl(name: string, caller: string): URL {
  const file = typeof TACHO_BUILD === 'undefined' ? `${name}${path.extname(caller)}` : `${name}-${TACHO_BUILD}.js`
  return new URL(`./${file}`, caller)
}
