/** A file that is ours whole: written, shown and deleted as one, and left alone if somebody else wrote it. */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import path from 'node:path'
import { failed } from '../engine/stop.ts'
import { printable, printLine } from '../engine/output.ts'
import { isConfirmed } from './confirm.ts'

export interface OwnFile {
  readonly file: string
  readonly mode: number
  /** Whether this text is ours. */
  readonly isOurs: (text: string) => boolean
}

interface WriteOptions {
  readonly yes?: true | undefined
  /** Written first, so that no hook lacks it. */
  readonly first: () => void
}

/** Shows the change and asks. True if the file is now as wanted. */
export async function writeOwnFile(own: OwnFile, text: string, { yes, first }: WriteOptions): Promise<boolean> {
  const { file, mode } = own
  const before = ownText(own)
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

export async function deleteOwnFile(own: OwnFile, yes: true | undefined): Promise<void> {
  const { file } = own
  const before = ownText(own)
  if (before === null) return printLine(`${file} needs no change.`)
  printLine(`${file}:`)
  printChange(before, '')
  if (!(await isConfirmed(yes))) return
  writing(() => rmSync(file))
  printLine(`Deleted ${file}.`)
}

/** Null if there is no file. */
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
