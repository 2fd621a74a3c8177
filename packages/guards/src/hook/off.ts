/** Finds settings that switch the hooks of a user or a project off, for `tacho hook check`. */
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import { AGENTS, type AgentName } from './agents.ts'
import { isOurs, managedFile } from './managed.ts'

export interface Off {
  readonly isOff: boolean
  readonly what: string
}

/** The first such setting in the user's files and those of this directory; null if there is none. */
export function offIn(agent: AgentName, home = homedir(), directory = process.cwd()): Off | null {
  const { off, settings } = AGENTS[agent]
  if (!off) return null
  const folder = settings.variable === undefined ? undefined : process.env[settings.variable]
  const ofUser = off.files.map((file) => (folder ? path.join(folder, path.basename(file)) : path.join(home, file)))
  const files = [...ofUser, ...off.files.map((file) => path.join(directory, file))]
  const file = [...new Set(files)].find((each) => off.pattern.test(textOf(each)))
  if (file !== undefined) return { isOff: true, what: `They are switched off in ${file}.` }
  if (!off.byManaged) return null
  const managed = managedFile(agent)
  const text = textOf(managed)
  if (!off.byManaged.test(text)) return null
  return { isOff: !isOurs(agent, text), what: `They do not run: ${managed} allows managed hooks only.` }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
