/** Hooks in the settings of the whole machine. */
import { writeAccount } from '@tacho/guards/hook/account.ts'
import { AGENTS, type AgentName } from '@tacho/guards/hook/agents.ts'
import { commandFor } from '@tacho/guards/hook/command.ts'
import { isOurs, managedAccountFile, managedFile, managedText } from '@tacho/guards/hook/managed.ts'
import type { Account } from '@tacho/guards/state.ts'
import { printLine } from '../engine/output.ts'
import { deleteOwnFile, writeOwnFile, type OwnFile } from './own-file.ts'

interface Managed {
  readonly agent: AgentName
  readonly account: Account
  readonly program: string
  readonly flags: readonly string[]
}

interface ManagedOptions {
  readonly yes?: true
  readonly approvalTimeout: number
}

export async function installManaged(managed: Managed, { yes, approvalTimeout }: ManagedOptions): Promise<void> {
  const { agent, account, program, flags } = managed
  const accountFile = managedAccountFile()
  const parts = { agent, program, flags: [...flags, '--account', accountFile], stateFolder: null }
  const text = managedText(agent, (event) => commandFor(parts, event), approvalTimeout)
  const first = (): void => writeAccount(account, accountFile, 0o644)
  if (!(await writeOwnFile(ownFile(agent), text, { yes, first }))) return
  printLine(`Address and key are in ${accountFile}, which every user of this machine can read.`)
  if (AGENTS[agent].managed?.isAlone) printLine('Other hooks of users and projects no longer run in this agent.')
}

export async function uninstallManaged(agent: AgentName, { yes }: Pick<ManagedOptions, 'yes'>): Promise<void> {
  await deleteOwnFile(ownFile(agent), yes)
}

function ownFile(agent: AgentName): OwnFile {
  return { file: managedFile(agent), mode: 0o644, isOurs: (text) => isOurs(agent, text) }
}
