/** The hooks in the settings of a coding agent: both agents have the same form, in different files. */
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { homedir } from 'node:os'
import path from 'node:path'
import type { AgentName } from './record.ts'

type Settings = Record<string, unknown>

export interface InstallOptions {
  readonly agent: AgentName
  /** Use the settings of the project in the current directory, not the user's. */
  readonly project: boolean
}

const COMMON = [
  'SessionStart',
  'UserPromptSubmit',
  'PreToolUse',
  'PermissionRequest',
  'PostToolUse',
  'Stop',
  'SubagentStop',
]

/** The events that each agent documents. */
const EVENTS: Record<AgentName, readonly string[]> = {
  'claude-code': [...COMMON, 'PostToolUseFailure', 'Notification', 'SubagentStart', 'SessionEnd'],
  codex: [...COMMON, 'SubagentStart', 'SessionEnd', 'Interrupt'],
}

/** Seconds that the agent gives the hook after its own longest wait. */
const SPARE_SECONDS = 30
const OTHER_TIMEOUT_SECONDS = 10
/** The longest time that Codex allows for these hooks. */
const SHORT_TIMEOUT_SECONDS = 3

export function settingsFile({ agent, project }: InstallOptions, variables = process.env): string {
  const root = project ? process.cwd() : homedir()
  if (agent === 'codex') {
    const folder = project ? path.join(root, '.codex') : variables['CODEX_HOME'] || path.join(root, '.codex')
    return path.join(folder, 'hooks.json')
  }
  const folder = project ? path.join(root, '.claude') : variables['CLAUDE_CONFIG_DIR'] || path.join(root, '.claude')
  return path.join(folder, 'settings.json')
}

/** @throws Error with a sentence if the file is not a JSON object with an object of hooks. */
export function readSettings(file: string): Settings {
  if (!existsSync(file)) return {}
  let settings: unknown
  try {
    settings = JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    throw new Error(`${file} is not JSON`)
  }
  if (!isObject(settings)) throw new Error(`${file} is not a JSON object`)
  if (settings['hooks'] !== undefined && !isObject(settings['hooks']))
    throw new Error(`hooks in ${file} is not an object`)
  return settings
}

/** Replaces the file whole, and keeps its mode. */
export function writeSettings(file: string, settings: Settings): void {
  mkdirSync(path.dirname(file), { recursive: true })
  const mode = existsSync(file) ? statSync(file).mode & 0o777 : 0o600
  const temporary = `${file}.${randomUUID()}`
  writeFileSync(temporary, `${JSON.stringify(settings, null, 2)}\n`, { mode, flag: 'wx' })
  renameSync(temporary, file)
}

/** The settings with our hooks, after those that are there. Ours from before are replaced. */
export function withHooks(
  settings: Settings,
  agent: AgentName,
  commandOf: (event: string) => string,
  approvalSeconds: number,
): Settings {
  const hooks = { ...(withoutHooks(settings, agent)['hooks'] as Settings | undefined) }
  for (const event of EVENTS[agent]) {
    const groups = hooks[event]
    const hook = { type: 'command', command: commandOf(event), timeout: timeoutOf(agent, event, approvalSeconds) }
    hooks[event] = [...(Array.isArray(groups) ? (groups as unknown[]) : []), { hooks: [hook] }]
  }
  return { ...settings, hooks }
}

/** The settings without exactly our hooks; groups and events that become empty are removed too. */
export function withoutHooks(settings: Settings, agent: AgentName): Settings {
  const { hooks, ...others } = settings
  if (!isObject(hooks)) return settings
  const kept: Settings = {}
  for (const [event, groups] of Object.entries(hooks)) {
    if (!Array.isArray(groups)) {
      kept[event] = groups
      continue
    }
    const left = groups.flatMap((group: unknown) => {
      if (!isObject(group) || !Array.isArray(group['hooks'])) return [group]
      const own = group['hooks'].filter((hook: unknown) => !isOurs(hook, agent))
      if (own.length === group['hooks'].length) return [group]
      return own.length === 0 ? [] : [{ ...group, hooks: own }]
    })
    if (left.length > 0 || groups.length === 0) kept[event] = left
  }
  return Object.keys(kept).length > 0 || Object.keys(hooks).length === 0 ? { ...settings, hooks: kept } : others
}

/** Our hooks as lines for people. */
export function ownHooks(settings: Settings, agent: AgentName): string[] {
  const { hooks } = settings
  return Object.entries(isObject(hooks) ? hooks : {}).flatMap(([event, groups]) => {
    const all = Array.isArray(groups) ? groups.filter(isObject).flatMap((group) => group['hooks']) : []
    const own = all.filter((hook) => isOurs(hook, agent)) as { command: string; timeout: number }[]
    return own.map(({ command, timeout }) => `${event.padEnd(18)}  ${command}  (timeout ${timeout} s)`)
  })
}

/** The command lines of our hooks at an event. */
export function ownCommands({ hooks }: Settings, agent: AgentName, event: string): string[] {
  const groups = isObject(hooks) ? hooks[event] : undefined
  const all = Array.isArray(groups) ? groups.filter(isObject).flatMap((group) => group['hooks']) : []
  return all.filter((hook) => isOurs(hook, agent)).map((hook) => (hook as { command: string }).command)
}

function timeoutOf(agent: AgentName, event: string, approvalSeconds: number): number {
  if (event === 'PreToolUse') return approvalSeconds + SPARE_SECONDS
  return agent === 'codex' && ['SessionEnd', 'Interrupt'].includes(event)
    ? SHORT_TIMEOUT_SECONDS
    : OTHER_TIMEOUT_SECONDS
}

function isOurs(hook: unknown, agent: AgentName): boolean {
  const command = isObject(hook) ? hook['command'] : undefined
  return typeof command === 'string' && new RegExp(`(^|[/\\\\])tacho["']? hook ${agent}( |$)`).test(command)
}

function isObject(value: unknown): value is Settings {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
