import path from 'node:path'
import { readFileSync } from 'node:fs'

/** Sources are four folders below it, the built program (packages/cli/dist) is three. */
export const ROOT = path.resolve(import.meta.dirname, import.meta.filename.endsWith('.ts') ? '../../../..' : '../../..')

/** Only in the built program (scripts/build-program.mjs): the version, and the commit it was built from unless it is a release. */
declare const TACHO_VERSION: string | undefined

/** Sources can change at any time, so no commit describes them. */
export function programVersion(): string {
  if (typeof TACHO_VERSION !== 'undefined') return TACHO_VERSION
  return `${versionIn(path.join(ROOT, 'package.json'))}-dev+sources`
}

export function versionIn(packageFile: string | URL): string {
  return (JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string }).version
}

/** Only in the built program (scripts/build-program.mjs). */
declare const TACHO_BUILD: string | undefined

/** Among the sources, the module is next to the caller. The build has all modules in one folder. */
export function moduleUrl(name: string, caller: string): URL {
  const file = typeof TACHO_BUILD === 'undefined' ? `${name}${path.extname(caller)}` : `${name}-${TACHO_BUILD}.js`
  return new URL(`./${file}`, caller)
}
