/** Hooks for the whole machine, which the settings of a user or a repository cannot switch off. */
import path from 'node:path'
import type { AgentName } from './agents.ts'
import { withHooks } from './settings.ts'

/** The agents whose managed settings can hold our hooks alone. */
export type ManagedAgent = 'claude-code' | 'codex'

export function isManagedAgent(agent: AgentName): agent is ManagedAgent {
  return agent === 'claude-code' || agent === 'codex'
}

/** A file of its own, which an administrator deploys or deletes whole. */
export function managedFile(agent: ManagedAgent, root = '/'): string {
  const file = {
    'claude-code':
      process.platform === 'darwin'
        ? 'Library/Application Support/ClaudeCode/managed-settings.d/tacho.json'
        : 'etc/claude-code/managed-settings.d/tacho.json',
    codex: 'etc/codex/requirements.toml',
  }[agent]
  return path.join(root, file)
}

/** Address and key, which every user of the machine can read and only root can change. */
export function managedAccountFile(root = '/'): string {
  return path.join(root, 'etc/tacho/hook.json')
}

const TITLE =
  '# Written by "tacho hook install --managed". Do not change it: "tacho hook uninstall --managed" deletes it.'

/** Claude Code reads these before it starts the hook. */
const EMPTIED = ['CLAUDE_CODE_SHELL_PREFIX', 'LD_PRELOAD', 'LD_AUDIT', 'LD_LIBRARY_PATH', 'BASH_ENV', 'ENV']

export function managedText(
  agent: ManagedAgent,
  commandOf: (event: string) => string,
  approvalSeconds: number,
): string {
  const { hooks } = withHooks({}, agent, commandOf, approvalSeconds) as { hooks: Hooks }
  if (agent === 'claude-code') {
    const env = Object.fromEntries(EMPTIED.map((name) => [name, '']))
    return `${JSON.stringify({ allowManagedHooksOnly: true, disableAllHooks: false, env, hooks }, null, 2)}\n`
  }
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

/** The settings in our own file, as those of a user look. */
export function managedSettings(agent: ManagedAgent, text: string): Record<string, unknown> {
  if (agent === 'claude-code') return JSON.parse(text) as Record<string, unknown>
  const found = text.matchAll(/^\[\[hooks\.(\w+)\.hooks\]\]\ntype = "command"\ncommand = (".*")$/gm)
  const hooks = [...found].map(([, event, command]) => [
    event,
    [{ hooks: [{ command: JSON.parse(String(command)) as unknown }] }],
  ])
  return { hooks: Object.fromEntries(hooks) as unknown }
}

type Hooks = Record<string, { hooks: { command: string; timeout: number }[] }[]>

/** Whether this command wrote the file. */
export function isOurs(agent: ManagedAgent, text: string): boolean {
  return agent === 'codex' ? text.startsWith(TITLE) : text.includes('tacho')
}
