import { readFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from './root.ts'

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
