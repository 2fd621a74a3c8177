import { programVersion } from '@tacho/server/program/version.ts'
import type { Command } from 'commander'
import { withJson, type OutputOptions } from '../settings/options.ts'
import { printJson, printLine } from '../terminal/output.ts'

export function addVersion(command: Command): void {
  withJson(command)
    .addHelpText(
      'after',
      `
Between releases, the version names the commit that the program was built from: 0.1.0-dev+23c70e77. It ends with .changed
if sources had changes that are not in that commit. For the version of a server, use \`tacho doctor\`.

Examples:
  tacho version
  tacho version --json`,
    )
    .action(({ json }: OutputOptions) => {
      const [version, node] = [programVersion(), process.versions.node]
      if (json) printJson({ version, node })
      else printLine(version)
    })
}
