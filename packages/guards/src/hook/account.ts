/** Address and key of a hook: from its environment, else from the file that `tacho hook install` writes. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import path from 'node:path'
import { stateRoot, type Account } from '../state.ts'

const DEFAULT_URL = 'http://localhost:4680'

type Variables = Readonly<Record<string, string | undefined>>

/**
 * Null if there is no key. Address and key belong together: settings of a project can set TACHO_URL, and must not get
 * the key of the file sent to another address.
 */
export function readAccount(variables: Variables = process.env): Account | null {
  const { TACHO_API_KEY: apiKey, TACHO_URL: url } = variables
  if (apiKey) return { apiKey, url: url || DEFAULT_URL }
  try {
    const kept = JSON.parse(readFileSync(accountFile(variables), 'utf8')) as Partial<Account>
    if (typeof kept.apiKey !== 'string' || typeof kept.url !== 'string') return null
    if (url && url !== kept.url) {
      const why = `TACHO_URL is ignored, because TACHO_API_KEY is not set; ${accountFile(variables)} has address and key`
      process.stderr.write(`tacho: ${why}.\n`)
    }
    return { apiKey: kept.apiKey, url: kept.url }
  } catch {
    return null
  }
}

export function accountFile(variables: Variables = process.env): string {
  return path.join(stateRoot(variables), 'hook.json')
}

/** Replaces the file. Only its owner can read it. */
export function writeAccount(account: Account, variables: Variables = process.env): void {
  const file = accountFile(variables)
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
  const temporary = `${file}.${randomUUID()}`
  writeFileSync(temporary, JSON.stringify({ url: account.url, apiKey: account.apiKey }), { mode: 0o600, flag: 'wx' })
  renameSync(temporary, file)
}
