import path from 'node:path'
import { readFileSync } from 'node:fs'

/** Among the sources, the root is four folders up; from the built program (packages/cli/dist), three. */
export const ROOT = path.resolve(import.meta.dirname, import.meta.filename.endsWith('.ts') ? '../../../..' : '../../..')

/**
 * Defined only in the built program (scripts/build-program.mjs): the version, with the commit unless it is a release.
 */
declare const TACHO_VERSION: string | undefined

/** The version of sources has no commit, because sources can change at any time. */
export function programVersion(): string {
  if (typeof TACHO_VERSION !== 'undefined') return TACHO_VERSION
  return `${versionIn(path.join(ROOT, 'package.json'))}-dev+sources`
}

export function versionIn(packageFile: string | URL): string {
  return (JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string }).version
}

/** Defined only in the built program (scripts/build-program.mjs). */
declare const TACHO_BUILD: string | undefined

/** Among the sources, the module is next to the caller. The build has all modules in one folder. */
export function moduleUrl(name: string, caller: string): URL {
  const file = typeof TACHO_BUILD === 'undefined' ? `${name}${path.extname(caller)}` : `${name}-${TACHO_BUILD}.js`
  return new URL(`./${file}`, caller)
}
