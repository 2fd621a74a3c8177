/** Hooks for the whole machine, which the settings of a user or a repository cannot switch off. */
import path from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { AGENTS, type AgentName } from './agents.ts'
import { ownCommands, withHooks, withoutHooks } from './settings.ts'

type Settings = Record<string, unknown>

export function isManagedAgent(agent: AgentName): boolean {
  return AGENTS[agent].managed !== undefined
}

/** A separate file, so that an administrator can deploy or delete it as a whole. */
export function managedFile(agent: AgentName, root = '/'): string {
  const { managed } = AGENTS[agent]
  if (!managed) throw new Error(`${agent} has no managed settings`)
  return path.join(root, (process.platform === 'darwin' && managed.darwin) || managed.file)
}

/** Address and key, which every user of the machine can read and only root can change. */
export function managedAccountFile(root = '/'): string {
  return path.join(root, 'etc/tacho/hook.json')
}

const TITLE =
  '# Written by "tacho hook install --managed". Do not change it: "tacho hook uninstall --managed" deletes it.'

export function managedText(agent: AgentName, commandOf: (event: string) => string, approvalSeconds: number): string {
  const settings = withHooks({ ...AGENTS[agent].managed?.beside }, agent, commandOf, approvalSeconds)
  return agent === 'codex' ? toml(settings['hooks'] as Hooks) : `${JSON.stringify(settings, null, 2)}\n`
}

/** Codex accepts managed hooks only as TOML, and we have no TOML parser. */
function toml(hooks: Hooks): string {
  const lines = Object.entries(hooks).flatMap(([event, [group]]) =>
    (group?.hooks ?? []).flatMap(({ command, timeout }) => [
      `[[hooks.${event}]]`,
      `[[hooks.${event}.hooks]]`,
      'type = "command"',
      `command = ${JSON.stringify(command)}`,
      `timeout = ${timeout}`,
    ]),
  )
  return [TITLE, 'allow_managed_hooks_only = true', '[features]', 'hooks = true', ...lines, ''].join('\n')
}

/** The settings in our own file, in the form of a user's settings. */
export function managedSettings(agent: AgentName, text: string): Settings {
  if (agent !== 'codex') return JSON.parse(text) as Settings
  const hookMatches = text.matchAll(/^\[\[hooks\.(\w+)\.hooks\]\]\ntype = "command"\ncommand = (".*")$/gm)
  const hooks = [...hookMatches].map(([, event, command]) => [
    event,
    [{ hooks: [{ command: JSON.parse(String(command)) as unknown }] }],
  ])
  return { hooks: Object.fromEntries(hooks) as unknown }
}

type Hooks = Record<string, { hooks: { command: string; timeout: number }[] }[]>

/** Whether this command wrote the file and nobody has changed it. */
export function isOurs(agent: AgentName, text: string): boolean {
  if (agent === 'codex') return text.startsWith(TITLE)
  try {
    const settings = JSON.parse(text) as Settings
    const others = withoutHooks(settings, agent)
    return ownCommands(settings, agent).length > 0 && isDeepStrictEqual(others, AGENTS[agent].managed?.beside)
  } catch {
    return false
  }
}
