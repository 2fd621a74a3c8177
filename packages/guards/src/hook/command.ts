/** The command line that an agent runs at each step. */
import path from 'node:path'
import { AGENTS, type AgentName } from './agents.ts'

export interface CommandParts {
  readonly agent: AgentName
  /** The absolute path of `tacho`. */
  readonly program: string
  /** Flags of `tacho hook`, after the agent. */
  readonly flags: readonly string[]
  /** Null: the folder of the user who runs the agent. */
  readonly stateFolder: string | null
}

/**
 * Agents run a tool if its hook is missing, crashes or prints something that is no decision. So the command accepts
 * only a complete answer. The script is inside the command: an empty script file, or a folder in its place, would exit
 * with 0.
 */
function beforeTool(agent: AgentName): string {
  const { denial, pass } = AGENTS[agent]
  const [before, after] = denial
  const answers = [
    `'${before}"'*'"${after}'`,
    ...(agent === 'claude-code' ? [`'${before.replace('"deny"', '"ask"')}"'*'"${after}'`] : []),
    `'{"systemMessage":"'*'"}'`,
  ]
  return [
    'answer=$("$@") || exit 2;',
    `case $answer in "{}") ${pass === undefined ? '' : `echo '${pass}'; `}exit 0;;`,
    `${answers.join(' | ')}) ;;`,
    '*) exit 2;; esac;',
    `printf "%s\\n" "$answer"`,
  ].join(' ')
}

const BROKEN = 'tacho: the hook gave no decision, so the tool was not run. If it is broken, run: tacho hook install'

/**
 * The hook's command. It uses absolute paths and its own environment, because settings of a repository can set PATH,
 * NODE_OPTIONS and our variables. Before a tool, every end without an answer is a refusal. At other steps it is not:
 * exit code 2 would keep the agent from stopping.
 */
export function commandFor(
  { agent, program, flags, stateFolder }: CommandParts,
  event: string,
  variables = process.env,
): string {
  const ownCommands = {
    // The installation has its own Node if the package does not include one.
    PATH: `${path.dirname(process.execPath)}:/usr/bin:/bin`,
    ...(stateFolder !== null && { TACHO_STATE_DIR: stateFolder }),
    ...(variables['NODE_EXTRA_CA_CERTS'] && { NODE_EXTRA_CA_CERTS: path.resolve(variables['NODE_EXTRA_CA_CERTS']) }),
  }
  const isBeforeTool = AGENTS[agent].events[event] === 'PreToolUse'
  // The records of these agents do not name the step.
  const step = AGENTS[agent].settings.form === 'list' ? ['--step', event] : []
  const words = [
    '/usr/bin/env',
    '-i',
    ...Object.entries(ownCommands).map(([name, value]) => `${name}=${value}`),
    '/bin/sh',
    ...(isBeforeTool ? ['-c', beforeTool(agent), 'before-tool'] : []),
    program,
    'hook',
    agent,
    ...step,
    ...flags,
  ]
  const line = words.map(quoted).join(' ')
  return isBeforeTool ? `${line} || { echo '${BROKEN}' >&2; exit 2; }` : `${line} || exit 1`
}

/** Whether the command has exactly these parts, with any flags. Settings of a repository can imitate our command. */
export function isCommandOf(parts: Omit<CommandParts, 'flags'>, event: string, command: string): boolean {
  const [before = '', after = ''] = commandFor({ ...parts, flags: ['FLAGS'] }, event).split('FLAGS')
  const flags = command.slice(before.length, -after.length)
  return command.startsWith(before) && command.endsWith(after) && /^[\w ./-]*$/.test(flags)
}

function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
