/**
 * Profiles of `tacho login` and `tacho use`: addresses, operator tokens and default environments, by name. Only the
 * owner can read the file. A token is sent only to the address with which it was stored.
 */
import { randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import { wrongUsage } from './stop.ts'

export interface Profile {
  url: string
  token: string
  /** The environment for commands that name none. */
  environment: { id: string; name: string; workspaceId: string } | null
}

export interface Profiles {
  current: string
  byName: Map<string, Profile>
}

export type Variables = Readonly<Record<string, string | undefined>>

export const DEFAULT_PROFILE = 'default'

export function profilesFile(variables: Variables = process.env): string {
  const base = process.platform === 'win32' ? variables['APPDATA'] : variables['XDG_CONFIG_HOME']
  return path.join(base || path.join(homedir(), '.config'), 'tacho', 'profiles.json')
}

export function readProfiles(variables: Variables = process.env): Profiles {
  const file = profilesFile(variables)
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { current: DEFAULT_PROFILE, byName: new Map() }
    throw wrongUsage(`${JSON.stringify(file)} cannot be read (${(error as NodeJS.ErrnoException).code}).`)
  }
  const storedProfiles = parse(text)
  if (storedProfiles === null)
    throw wrongUsage(`${JSON.stringify(file)} is damaged: remove it, and run \`tacho login\`.`)
  return storedProfiles
}

/** Replaces the file whole. */
export function writeProfiles({ current, byName }: Profiles, variables: Variables = process.env): void {
  const file = profilesFile(variables)
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
  const temporary = `${file}.${randomUUID()}`
  const text = JSON.stringify({ current, profiles: Object.fromEntries(byName) }, null, 2)
  writeFileSync(temporary, `${text}\n`, { mode: 0o600, flag: 'wx' })
  renameSync(temporary, file)
}

/** The profile that TACHO_PROFILE names; without the variable, the current profile or null. */
export function chosenProfile(variables: Variables = process.env): { name: string; profile: Profile } | null {
  const { current, byName } = readProfiles(variables)
  const wanted = variables['TACHO_PROFILE']
  const name = wanted ?? current
  const profile = byName.get(name)
  if (profile !== undefined) return { name, profile }
  if (wanted === undefined) return null
  throw wrongUsage(`TACHO_PROFILE is ${JSON.stringify(wanted)}, but ${knownProfiles(byName)}.`)
}

export function knownProfiles(byName: ReadonlyMap<string, Profile>): string {
  const names = [...byName.keys()].map((name) => JSON.stringify(name))
  return names.length === 0 ? 'there is no profile yet: run `tacho login`' : `the profiles are ${names.join(', ')}`
}

function parse(text: string): Profiles | null {
  try {
    const { current, profiles } = JSON.parse(text) as { current?: unknown; profiles?: unknown }
    if (typeof current !== 'string' || typeof profiles !== 'object' || profiles === null) return null
    const byName = new Map(Object.entries(profiles as Record<string, Profile>))
    return [...byName.values()].every(isProfile) ? { current, byName } : null
  } catch {
    return null
  }
}

function isProfile(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { url, token, environment } = value as Record<string, unknown>
  if (typeof url !== 'string' || typeof token !== 'string') return false
  if (environment === null) return true
  const place = environment as Record<string, unknown> | undefined
  return ['id', 'name', 'workspaceId'].every((key) => typeof place?.[key] === 'string')
}
