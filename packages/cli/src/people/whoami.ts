import type { Command } from 'commander'
import { asOperator, connect, type ServerOptions } from '../engine/options.ts'
import { printable, printJson, printLine } from '../engine/output.ts'

export function addWhoami(command: Command): void {
  asOperator(command).addHelpText('after', '\nExample:\n  tacho whoami --json').action(whoami)
}

async function whoami(options: ServerOptions): Promise<void> {
  const me = await connect(options).readMe()
  if (options.json) return printJson(me)
  printLine(`${me.kind === 'token' ? 'Operator token' : 'Operator'} ${printable(me.name)} (${me.id})`)
  if (me.installation) printLine('  runs the whole installation')
  if (me.everywhere !== null) printLine(`  ${me.everywhere} of every workspace`)
  for (const { name, role } of me.workspaces) printLine(`  ${role} of workspace ${printable(name)}`)
}
