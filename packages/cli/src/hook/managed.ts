/** Hooks in the settings of the whole machine. Each file is ours whole, or is left alone. */
import { writeAccount } from '@tacho/guards/hook/account.ts'
import { commandFor } from '@tacho/guards/hook/command.ts'
import { isOurs, managedAccountFile, managedFile, managedText, type ManagedAgent } from '@tacho/guards/hook/managed.ts'
import type { Account } from '@tacho/guards/state.ts'
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import path from 'node:path'
import { failed } from '../stop.ts'
import { printable, printLine } from '../terminal/output.ts'
import { isConfirmed } from './confirm.ts'

interface Managed {
  readonly agent: ManagedAgent
  readonly account: Account
  readonly program: string
  readonly flags: readonly string[]
}

interface Options {
  readonly yes?: true
  readonly approvalTimeout: number
}

export async function installManaged(managed: Managed, { yes, approvalTimeout }: Options): Promise<void> {
  const { agent, account, program, flags } = managed
  const file = managedFile(agent)
  const accountFile = managedAccountFile()
  const parts = { agent, program, flags: [...flags, '--account', accountFile], stateFolder: null }
  const text = managedText(agent, (event) => commandFor(parts, event), approvalTimeout)
  const before = ownText(agent, file)
  if (before === text) printLine(`${file} needs no change.`)
  else {
    printLine(`${file}:`)
    printChange(before ?? '', text)
  }
  if (before !== text && !(await isConfirmed(yes))) return
  writing(() => {
    // First, so that no hook lacks it.
    writeAccount(account, accountFile, 0o644)
    if (before !== text) replace(file, text)
  })
  printLine(`Written to ${file}. Address and key are in ${accountFile}, which every user of this machine can read.`)
  printLine('Other hooks of users and projects no longer run in this agent.')
}

export async function uninstallManaged(agent: ManagedAgent, { yes }: Pick<Options, 'yes'>): Promise<void> {
  const file = managedFile(agent)
  const before = ownText(agent, file)
  if (before === null) return printLine(`${file} needs no change.`)
  printLine(`${file}:`)
  printChange(before, '')
  if (!(await isConfirmed(yes))) return
  writing(() => rmSync(file))
  printLine(`Deleted ${file}.`)
}

/** Null if there is no file. */
function ownText(agent: ManagedAgent, file: string): string | null {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw failed(`${file} cannot be read (${(error as NodeJS.ErrnoException).code}); nothing was changed.`)
  }
  if (!isOurs(agent, text)) throw failed(`${file} is not from tacho; nothing was changed.`)
  return text
}

function printChange(before: string, after: string): void {
  const [old, next] = [before.split('\n'), after.split('\n')]
  for (const line of old.filter((each) => !next.includes(each))) printLine(`- ${printable(line)}`)
  for (const line of next.filter((each) => !old.includes(each))) printLine(`+ ${printable(line)}`)
}

function replace(file: string, text: string): void {
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o755 })
  const temporary = `${file}.${randomUUID()}`
  writeFileSync(temporary, text, { mode: 0o644, flag: 'wx' })
  renameSync(temporary, file)
}

function writing(write: () => void): void {
  try {
    write()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES' || code === 'EPERM') throw failed('Only root can write these settings: use sudo -E.')
    throw error
  }
}
