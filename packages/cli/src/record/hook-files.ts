/** Files of hooks: files that are entirely ours, and settings of the whole machine. */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import path from 'node:path'
import { writeAccount } from '@tacho/guards/hook/account.ts'
import { AGENTS, type AgentName } from '@tacho/guards/hook/agents.ts'
import { commandFor } from '@tacho/guards/hook/command.ts'
import { isOurs, managedAccountFile, managedFile, managedText } from '@tacho/guards/hook/managed.ts'
import type { Account } from '@tacho/guards/state.ts'
import { failed } from '../engine/stop.ts'
import { printable, printLine } from '../engine/output.ts'

/** A file that is entirely ours: written, shown and deleted as a whole. A file of somebody else is left alone. */

export interface OwnFile {
  readonly file: string
  readonly mode: number
  /** Whether a file with this text is ours. */
  readonly isOurs: (text: string) => boolean
}

interface WriteOptions {
  readonly yes?: true | undefined
  /** Writes what the hooks need. Called before the hooks themselves are written. */
  readonly first: () => void
}

/** Shows the change and asks. True if the file is now as wanted. */
export async function writeOwnFile(hookFile: OwnFile, text: string, { yes, first }: WriteOptions): Promise<boolean> {
  const { file, mode } = hookFile
  const before = ownText(hookFile)
  if (before === text) printLine(`${file} needs no change.`)
  else {
    printLine(`${file}:`)
    printChange(before ?? '', text)
    if (!(await isConfirmed(yes))) return false
  }
  writing(() => {
    first()
    if (before === text) return
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o755 })
    const temporary = `${file}.${randomUUID()}`
    writeFileSync(temporary, text, { mode, flag: 'wx' })
    renameSync(temporary, file)
  })
  if (before !== text) printLine(`Written to ${file}.`)
  return true
}

export async function deleteOwnFile(hookFile: OwnFile, yes: true | undefined): Promise<void> {
  const { file } = hookFile
  const before = ownText(hookFile)
  if (before === null) return printLine(`${file} needs no change.`)
  printLine(`${file}:`)
  printChange(before, '')
  if (!(await isConfirmed(yes))) return
  writing(() => rmSync(file))
  printLine(`Deleted ${file}.`)
}

/** The text of a hook file that this command wrote; null if the file does not exist. */
function ownText({ file, isOurs }: OwnFile): string | null {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw failed(`${file} cannot be read (${(error as NodeJS.ErrnoException).code}); nothing was changed.`)
  }
  if (!isOurs(text)) throw failed(`${file} is not from tacho; nothing was changed.`)
  return text
}

function printChange(before: string, after: string): void {
  const [old, next] = [before.split('\n'), after.split('\n')]
  for (const line of old.filter((each) => !next.includes(each))) printLine(`- ${printable(line)}`)
  for (const line of next.filter((each) => !old.includes(each))) printLine(`+ ${printable(line)}`)
}

function writing(write: () => void): void {
  try {
    write()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES' || code === 'EPERM')
      throw failed('You may not write these settings. For --managed, use sudo -E.')
    throw error
  }
}

/** Asks before settings of an agent change. */
export async function isConfirmed(yes: true | undefined): Promise<boolean> {
  if (yes || (process.stdin.isTTY && (await asked()))) return true
  process.stderr.write('Nothing was changed; add --yes to write.\n')
  process.exitCode = 3
  return false
}

async function asked(): Promise<boolean> {
  const { confirm } = await import('@clack/prompts')
  return (await confirm({ message: 'Write these settings?' })) === true
}

/** Hooks in the settings of the whole machine. */

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
