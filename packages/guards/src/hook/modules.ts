/**
 * Hooks for agents that run no commands, but load a module into their own process. The module runs our installed
 * command, so a tool runs only after a complete answer. The whole file of the module is ours.
 */
import { AGENTS, type AgentName } from './agents.ts'
import { timeoutOf } from './settings.ts'

export type ModuleAgent = 'opencode' | 'pi'

export function isModuleAgent(agent: AgentName): agent is ModuleAgent {
  return AGENTS[agent].settings.form === 'module'
}

const TITLE = '// Written by "tacho hook install". Do not change it: "tacho hook uninstall" deletes it.\n'

/** Whether this command wrote the file. */
export function isOurModule(text: string): boolean {
  return text.startsWith(TITLE)
}

/** Whether the file is exactly what this command writes for its hooks. A module of the repository can copy the first line. */
export function isWholeModule(
  agent: AgentName,
  text: string,
  isOur: (command: string, event: string) => boolean,
): boolean {
  if (!isModuleAgent(agent) || !isOurModule(text)) return false
  try {
    const hooks = hooksIn(text)
    return text === textWith(agent, hooks) && Object.entries(hooks).every(([event, [command]]) => isOur(command, event))
  } catch {
    return false
  }
}

/** The command lines that one of our modules runs before a tool. */
export function moduleCommands(text: string): string[] {
  const command = hooksIn(text)['PreToolUse']?.[0]
  return command === undefined ? [] : [command]
}

/** The command and the timeout of each step. */
type Hooks = Readonly<Record<string, readonly [command: string, timeout: number]>>

function hooksIn(text: string): Hooks {
  const [, hooks = '{}'] = /^const HOOKS = (\{.*\})$/m.exec(text) ?? []
  return JSON.parse(hooks) as Hooks
}

export function moduleText(agent: ModuleAgent, commandOf: (event: string) => string, approvalSeconds: number): string {
  const hooks = Object.entries(AGENTS[agent].events).map(
    ([event, ours]) => [event, [commandOf(event), timeoutOf(agent, ours, approvalSeconds) * 1_000]] as const,
  )
  return textWith(agent, Object.fromEntries(hooks))
}

function textWith(agent: ModuleAgent, hooks: Hooks): string {
  return [TITLE, IMPORTS, `const HOOKS = ${JSON.stringify(hooks)}\n`, RUN, BODIES[agent]].join('')
}

const IMPORTS = `import { spawn } from 'node:child_process'
import { homedir } from 'node:os'
import path from 'node:path'

`

/** Resolves with the answer; if the tool must not run, with the reason as `refused`. */
const RUN = `
function run(step, fields) {
  return new Promise((resolve) => {
    const [command, timeout] = HOOKS[step]
    let [output, errors] = ['', '']
    const end = (code) => {
      clearTimeout(timer)
      if (code !== 0) return resolve({ refused: errors || 'tacho: the hook gave no decision, so the tool was not run.' })
      try {
        resolve(output === '' ? {} : JSON.parse(output))
      } catch {
        resolve({ refused: 'tacho: the hook gave no decision, so the tool was not run.' })
      }
    }
    const child = spawn('/bin/sh', ['-c', command], { stdio: 'pipe' })
    // Child processes may still run and keep the pipes open.
    const timer = setTimeout(() => {
      child.kill()
      child.stdout.destroy()
      child.stderr.destroy()
      end(null)
    }, timeout)
    child.stdout.on('data', (data) => (output += data))
    child.stderr.on('data', (data) => (errors += data))
    child.on('error', () => end(null)).on('close', end)
    child.stdin.on('error', () => {})
    child.stdin.end(JSON.stringify({ hook_event_name: step, ...fields }))
  })
}
`

const BODIES: Readonly<Record<ModuleAgent, string>> = {
  opencode: `
const DATABASE = path.join(process.env.XDG_DATA_HOME || path.join(homedir(), '.local/share'), 'opencode/opencode.db')

export const Tacho = async ({ client, directory }) => {
  const started = new Set()
  const hook = async (step, session_id, fields) => {
    if (step !== 'SessionStart' && !started.has(session_id)) await hook('SessionStart', session_id, { source: 'startup' })
    started.add(session_id)
    const answer = await run(step, { session_id, cwd: directory, transcript_path: DATABASE, ...fields })
    const message = answer.systemMessage
    if (message) {
      console.error(message)
      await client.tui.showToast({ body: { title: 'Tacho', message, variant: 'warning' } }).catch(() => {})
    }
    return answer
  }
  return {
    event: async ({ event: { type, properties } }) => {
      if (type === 'session.idle') await hook('Stop', properties.sessionID, {})
    },
    'chat.message': async ({ sessionID }, { parts }) => {
      const prompt = parts.map(({ text }) => text).filter(Boolean).join('\\n')
      await hook('UserPromptSubmit', sessionID, { prompt })
    },
    'tool.execute.before': async ({ tool, sessionID, callID }, { args }) => {
      const { refused } = await hook('PreToolUse', sessionID, { tool_name: tool, tool_input: args, tool_use_id: callID })
      if (refused !== undefined) throw new Error(refused)
    },
    'tool.execute.after': async ({ tool, sessionID, callID, args }, { output }) => {
      const call = { tool_name: tool, tool_input: args, tool_use_id: callID }
      await hook('PostToolUse', sessionID, { ...call, tool_response: output })
    },
  }
}
`,
  pi: `
export default function (pi) {
  const hook = async (step, ctx, fields) => {
    const { sessionManager, cwd } = ctx
    const place = { session_id: sessionManager.getSessionId(), transcript_path: sessionManager.getSessionFile(), cwd }
    const answer = await run(step, { ...place, ...fields })
    if (answer.systemMessage) {
      if (ctx.hasUI) ctx.ui.notify(answer.systemMessage, 'warning')
      else console.error(answer.systemMessage)
    }
    return answer
  }
  pi.on('session_start', ({ reason }, ctx) => hook('SessionStart', ctx, { source: reason }))
  pi.on('before_agent_start', ({ prompt }, ctx) => void hook('UserPromptSubmit', ctx, { prompt }))
  pi.on('tool_call', async ({ toolName, toolCallId, input }, ctx) => {
    const call = { tool_name: toolName, tool_input: input, tool_use_id: toolCallId }
    const { refused } = await hook('PreToolUse', ctx, call)
    if (refused !== undefined) return { block: true, reason: refused }
  })
  pi.on('tool_result', async ({ toolName, toolCallId, input, content, isError }, ctx) => {
    const call = { tool_name: toolName, tool_input: input, tool_use_id: toolCallId }
    if (isError) await hook('PostToolUseFailure', ctx, { ...call, error: content })
    else await hook('PostToolUse', ctx, { ...call, tool_response: content })
  })
  pi.on('agent_end', async ({ messages }, ctx) => {
    const last = messages.at(-1)?.content
    const text = Array.isArray(last) ? last.map(({ text }) => text).filter(Boolean).join('\\n') : last
    await hook('Stop', ctx, { last_assistant_message: text })
  })
  pi.on('session_shutdown', async ({ reason }, ctx) => void (await hook('SessionEnd', ctx, { reason })))
}
`,
}
