/**
 * Files that guards keep for one environment: the last configuration, undelivered events, and what they know about
 * sessions.
 */
import { hash, randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'

export interface Account {
  readonly url: string
  readonly apiKey: string
}

export interface State {
  readonly directory: string
  readonly spool: string
  readonly configurationFile: string
  /** The same in every process of this user and environment. */
  readonly clientId: string
}

type Variables = Readonly<Record<string, string | undefined>>

/**
 * The folder of one environment, created with mode 700. Another key has another folder: undelivered events of one
 * environment are never sent to another.
 * @throws the error of the file system if the folder cannot be created.
 */
export function openState(account: Account, variables: Variables = process.env): State {
  const directory = stateDirectory(account, variables)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  return {
    directory,
    spool: path.join(directory, 'spool'),
    configurationFile: configurationFileIn(directory),
    clientId: clientIdIn(path.join(directory, 'client-id')),
  }
}

/** The folder of an account. It may not exist yet. */
export function stateDirectory({ url, apiKey }: Account, variables: Variables = process.env): string {
  return path.join(stateRoot(variables), digest(`${url}\n${apiKey}`).slice(0, 16))
}

export const configurationFileIn = (directory: string): string => path.join(directory, 'configuration.json')

/** TACHO_STATE_DIR, or the folder that the operating system has for such files. */
export function stateRoot(variables: Variables = process.env): string {
  const stateFolder = variables['TACHO_STATE_DIR']
  if (stateFolder) return path.resolve(stateFolder)
  const base = process.platform === 'win32' ? variables['LOCALAPPDATA'] : variables['XDG_STATE_HOME']
  return path.join(base || path.join(homedir(), '.local', 'state'), 'tacho')
}

function clientIdIn(file: string): string {
  try {
    // Only the first of several processes succeeds.
    writeFileSync(file, `guard-${randomUUID()}`, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const text = readFileSync(file, 'utf8').trim()
  // Another process may have created the file and not yet written it.
  return /^guard-[\w-]{1,100}$/.test(text) ? text : `guard-${digest(file).slice(0, 32)}`
}

/** SHA-256 in hex. */
export function digest(text: string): string {
  return hash('sha256', text)
}
