import { readFileSync } from 'node:fs'

export function versionIn(packageFile: string | URL): string {
  return (JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string }).version
}
