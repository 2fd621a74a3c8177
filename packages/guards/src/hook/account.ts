/** Address and key of a hook: from its environment, else from the file that `tacho hook install` writes. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import path from 'node:path'
import { stateRoot, type Account } from '../state.ts'

const DEFAULT_URL = 'http://localhost:4680'

type Variables = Readonly<Record<string, string | undefined>>

export interface HookAccount extends Account {
  /** Set if the environment names another address or key than the file: a sentence that says so. */
  readonly ignored?: string
}

/**
 * Null if there is no key. The file comes first: settings of a project can set variables, and must not choose the service
 * that decides.
 */
export function readAccount(file: string, variables: Variables = process.env): HookAccount | null {
  const { TACHO_API_KEY: apiKey, TACHO_URL: url } = variables
  const savedAccount = readFile(file)
  if (!savedAccount) return apiKey ? { apiKey, url: url || DEFAULT_URL } : null
  if ((!url || url === savedAccount.url) && (!apiKey || apiKey === savedAccount.apiKey)) return savedAccount
  const ignored = `Tacho ignores TACHO_URL and TACHO_API_KEY of the environment; ${file} has address and key.`
  return { ...savedAccount, ignored }
}

function readFile(file: string): Account | null {
  try {
    const { apiKey, url } = JSON.parse(readFileSync(file, 'utf8')) as Partial<Account>
    return typeof apiKey === 'string' && typeof url === 'string' ? { apiKey, url } : null
  } catch {
    return null
  }
}

export function accountFile(variables: Variables = process.env): string {
  return path.join(stateRoot(variables), 'hook.json')
}

/** Replaces the file. Only its owner can read it, unless it is for all users of the machine. */
export function writeAccount(account: Account, file = accountFile(), mode = 0o600): void {
  mkdirSync(path.dirname(file), { recursive: true, mode: mode | 0o700 | ((mode & 0o044) >> 2) })
  const temporary = `${file}.${randomUUID()}`
  writeFileSync(temporary, JSON.stringify({ url: account.url, apiKey: account.apiKey }), { mode, flag: 'wx' })
  renameSync(temporary, file)
}
