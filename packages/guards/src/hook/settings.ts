/** The hooks in the settings of a coding agent. */
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { homedir } from 'node:os'
import path from 'node:path'
import { AGENTS, type AgentName } from './agents.ts'

type Settings = Record<string, unknown>

export interface InstallOptions {
  readonly agent: AgentName
  /** Use the settings of the project in the current directory, not the user's. */
  readonly project: boolean
}

/** The agent gives the hook this many seconds more than the hook's own longest wait. */
const SPARE_SECONDS = 30
const OTHER_TIMEOUT_SECONDS = 10
/** The longest time that Codex allows for these hooks. */
const SHORT_TIMEOUT_SECONDS = 3

export function settingsFile({ agent, project }: InstallOptions, variables = process.env): string {
  const { settings } = AGENTS[agent]
  if (project) return path.join(process.cwd(), settings.project)
  const folder = settings.variable === undefined ? undefined : variables[settings.variable]
  return folder ? path.join(folder, path.basename(settings.user)) : path.join(homedir(), settings.user)
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

/** The settings with our hooks, after the existing ones. Replaces our earlier hooks. */
export function withHooks(
  settings: Settings,
  agent: AgentName,
  commandOf: (event: string) => string,
  approvalSeconds: number,
): Settings {
  const hooks = { ...(withoutHooks(settings, agent)['hooks'] as Settings | undefined) }
  const { form, unitsPerSecond, names, more, matchers } = AGENTS[agent].settings
  for (const [event, ours] of Object.entries(AGENTS[agent].events)) {
    const groups = hooks[event]
    const timeout = timeoutOf(agent, ours, approvalSeconds) * unitsPerSecond
    const command = commandOf(event)
    const matcher = matchers?.[event]
    const entry =
      form === 'groups'
        ? { hooks: [{ type: 'command', command, timeout }] }
        : {
            ...more,
            ...(matcher !== undefined && { matcher }),
            [names?.command ?? 'command']: command,
            [names?.timeout ?? 'timeout']: timeout,
          }
    hooks[event] = [...(Array.isArray(groups) ? (groups as unknown[]) : []), entry]
  }
  return { ...(form === 'list' && { version: 1 }), ...settings, hooks }
}

/** The settings without our hooks. Groups and events that become empty are removed too. */
export function withoutHooks(
  settings: Settings,
  agent: AgentName,
  isOur = (command: string, _event: string): boolean => looksLikeOurs(command, agent),
): Settings {
  const { hooks, ...others } = settings
  if (!isObject(hooks)) return settings
  const otherSettings: Settings = {}
  for (const [event, groups] of Object.entries(hooks)) {
    if (!Array.isArray(groups)) {
      otherSettings[event] = groups
      continue
    }
    const isOurs = (hook: unknown): boolean => isObject(hook) && isOur(commandIn(hook), event)
    const left = groups.flatMap((group: unknown) => {
      if (isOurs(group)) return []
      if (!isObject(group) || !Array.isArray(group['hooks'])) return [group]
      const otherHooks = group['hooks'].filter((hook: unknown) => !isOurs(hook))
      if (otherHooks.length === group['hooks'].length) return [group]
      return otherHooks.length === 0 ? [] : [{ ...group, hooks: otherHooks }]
    })
    if (left.length > 0 || groups.length === 0) otherSettings[event] = left
  }
  return Object.keys(otherSettings).length > 0 || Object.keys(hooks).length === 0
    ? { ...settings, hooks: otherSettings }
    : others
}

/** Our hooks that `others` does not have, as lines for people. Steps with the same command share a line. */
export function ownHooks(settings: Settings, agent: AgentName, others: Settings): string[] {
  const { hooks } = settings
  const steps = new Map<string, string[]>()
  for (const event of Object.keys(isObject(hooks) ? hooks : {})) {
    const lines = (from: Settings): string[] =>
      hooksAt(from, agent, event).map((hook) => `${commandIn(hook)}  (timeout ${secondsIn(hook, agent)} s)`)
    const theirs = new Set(lines(others))
    for (const line of lines(settings)) {
      if (!theirs.has(line)) steps.set(line, [...(steps.get(line) ?? []), event])
    }
  }
  return [...steps].map(([line, events]) => `${events.join(', ')}: ${line}`)
}

/** The command lines of our hooks before a tool. */
export function ownCommands(settings: Settings, agent: AgentName): string[] {
  const steps = Object.entries(AGENTS[agent].events).filter(([, ours]) => ours === 'PreToolUse')
  return steps.flatMap(([event]) => hooksAt(settings, agent, event).map(commandIn))
}

function hooksAt({ hooks }: Settings, agent: AgentName, event: string): Settings[] {
  const entries = isObject(hooks) ? hooks[event] : undefined
  const all = Array.isArray(entries)
    ? entries.filter(isObject).flatMap((entry): unknown[] => (Array.isArray(entry['hooks']) ? entry['hooks'] : [entry]))
    : []
  return all.filter((hook): hook is Settings => isObject(hook) && looksLikeOurs(commandIn(hook), agent))
}

const commandIn = (hook: Settings): string => String(hook['command'] ?? hook['bash'])

const secondsIn = (hook: Settings, agent: AgentName): number =>
  Number(hook['timeout'] ?? hook['timeoutSec']) / AGENTS[agent].settings.unitsPerSecond

export function timeoutOf(agent: AgentName, event: string, approvalSeconds: number): number {
  if (event === 'PreToolUse') return approvalSeconds + SPARE_SECONDS
  return agent === 'codex' && ['SessionEnd', 'Interrupt'].includes(event)
    ? SHORT_TIMEOUT_SECONDS
    : OTHER_TIMEOUT_SECONDS
}

function looksLikeOurs(command: string, agent: AgentName): boolean {
  return new RegExp(`(^|[/\\\\])tacho["']? hook ${agent}( |$)`).test(command)
}

function isObject(value: unknown): value is Settings {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
