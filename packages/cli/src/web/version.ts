import { programVersion } from '@tacho/server/program/program.ts'
import type { Command } from 'commander'
import { readSource } from '../policies/source-file.ts'
import { withJson, type OutputOptions } from '../engine/options.ts'
import { wrongUsage } from '../engine/stop.ts'
import { printJson, printLine } from '../engine/output.ts'

interface VersionOptions extends OutputOptions {
  check?: string
}

export function addVersion(command: Command): void {
  withJson(command)
    .option('--check <file>', 'compare with the newest version, which this file names; - reads standard input')
    .addHelpText(
      'after',
      `
Between releases, the version names the commit that the program was built from: 0.1.0-dev+23c70e77. It ends with .changed
if sources had changes that are not in that commit. For the version of a server, use \`tacho doctor\`.

\`--check\` reads the newest version from a file of yours: JSON with a member \`version\`, or a text that begins with it. It makes
no network request, and exits with 1 if that version is newer.

Examples:
  tacho version
  tacho version --check /srv/packages/tacho/newest.json
  curl -sf https://packages.example.com/tacho/newest.json | tacho version --check -`,
    )
    .action(async ({ json, check }: VersionOptions) => {
      const [version, node] = [programVersion(), process.versions.node]
      const newest = check === undefined ? null : versionNamedIn(await readSource(check), check)
      const isOld = newest !== null && isNewer(newest, version)
      if (json) printJson({ version, node, ...(newest !== null && { newest, isNewest: !isOld }) })
      else if (newest === null) printLine(version)
      else printLine(isOld ? `${version}; ${newest} is newer` : `${version} is the newest version`)
      if (isOld) process.exitCode = 1
    })
}

function versionNamedIn(text: string, place: string): string {
  const named = /^\s*(?:\{[^]*?"version"\s*:\s*")?v?(\d{1,9}\.\d{1,9}\.\d{1,9}(?:[-+][0-9A-Za-z.+-]{1,100})?)/.exec(
    text,
  )?.[1]
  if (named === undefined) throw wrongUsage(`${place} names no version such as 0.2.0.`)
  return named
}

/** Semantic Versioning 2.0.0, 11: a version is newer than its pre-releases. Does not compare two of its pre-releases. */
export function isNewer(one: string, other: string): boolean {
  const [[a, aBefore], [b, bBefore]] = [one, other].map((version) => {
    const [numbers = '', before] = version.split('+', 1).join('').split(/-(.*)/s)
    return [numbers.split('.').map(Number), before !== undefined && before !== ''] as const
  }) as [readonly [number[], boolean], readonly [number[], boolean]]
  const at = a.findIndex((number, index) => number !== b[index])
  return at < 0 ? !aBefore && bBefore : (a[at] ?? 0) > (b[at] ?? 0)
}
